"""All cases of flash-linear-attention."""

import fla_attention_cases  # noqa: F401
import fla_delta_cases  # noqa: F401
import fla_linear_cases  # noqa: F401
import fla_module_cases  # noqa: F401
from fla_case import CASES as CASES
