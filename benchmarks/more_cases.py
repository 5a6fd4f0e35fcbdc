"""All cases of packages that came last."""

import more_serving_cases  # noqa: F401
from more_training_cases import CASES as CASES
