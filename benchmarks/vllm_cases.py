"""All cases of vLLM."""

import vllm_attention_cases  # noqa: F401
import vllm_expert_cases  # noqa: F401
import vllm_sampling_cases  # noqa: F401
import vllm_state_cases  # noqa: F401
from vllm_case import CASES as CASES
