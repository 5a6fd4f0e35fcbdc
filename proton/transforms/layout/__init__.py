"""Which thread holds what: layouts, the instruction of each product, what lies in shared memory."""
