"""`TensorDescriptor`, under the name that it has in Triton."""

from proton.runtime.launch.tensor_descriptor import TensorDescriptor as TensorDescriptor
