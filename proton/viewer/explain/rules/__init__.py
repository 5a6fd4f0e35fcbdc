"""Rules of `explain`: a module is a rule, which says what it looks for in its `RULE`."""
