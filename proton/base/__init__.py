"""The ground floor: errors, knobs, targets. Imports nothing of Proton."""
