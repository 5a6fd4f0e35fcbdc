"""All cases of FBGEMM."""

import fbgemm_genai_cases  # noqa: F401
import fbgemm_jagged_cases  # noqa: F401
import fbgemm_number_cases  # noqa: F401
from fbgemm_case import CASES as CASES
