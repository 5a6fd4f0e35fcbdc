"""`triton.experimental`: of Triton's experiments Gluon, which is `proton.gluon`, is there."""

from proton import gluon as gluon
