"""The dialects of Proton, and the one door to MLIR."""

from proton.dialect.kinds import Kind as Kind
from proton.dialect.kinds import OpRules as OpRules
from proton.dialect.kinds import by_name as by_name
from proton.dialect.kinds import isa as isa
from proton.dialect.kinds import name_of as name_of
from proton.dialect.kinds import names_of as names_of
