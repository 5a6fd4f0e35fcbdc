"""All cases of SGLang."""

import sglang_attention_cases  # noqa: F401
import sglang_expert_cases  # noqa: F401
import sglang_request_cases  # noqa: F401
import sglang_row_cases  # noqa: F401
import sglang_state_cases  # noqa: F401
from sglang_case import CASES as CASES
