"""All cases of libraries of a few kernels each."""

import small_attention_cases  # noqa: F401
import small_data_cases  # noqa: F401
import small_expert_cases  # noqa: F401
import small_product_cases  # noqa: F401
import small_row_cases  # noqa: F401
import small_state_cases  # noqa: F401
from small_case import CASES as CASES
