"""`TensorDescriptor`, under the name that it has in Triton."""

from proton.runtime.tensor_descriptor import TensorDescriptor as TensorDescriptor
