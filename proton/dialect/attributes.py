"""The names of the attributes that passes leave for each other, for back ends and for launchers."""

# On a module
NUM_WARPS = "ttg.num-warps"  # i32: warps of a program
THREADS_PER_WARP = "ttg.threads-per-warp"  # i32: lanes, where they are not 32

# On a function
KERNEL = "tt.kernel"  # unit: it is launched, not called
NOINLINE = "tt.noinline"  # true: calls of it stay calls
PARTITION = "proton.partition"  # i32: its number; a call begins it (outline_workers.py)
ROLES = "proton.roles"  # of each warp, on a CPU of each partition, what its author calls it
ABI = "proton.abi"  # the arguments that passes added, by name (abi.py)
WRITTEN = "proton.written"  # the numbers of the arguments that it may write; -1: other memory
WAITS = "proton.waits"  # unit: its programs wait for each other
SCRATCH_BYTES = "proton.scratch_bytes"  # i64: of local buffers that are too large for the stack
ASSERTIONS = "proton.assertions"  # the messages, by status - 1
BOUNDS = "proton.bounds"  # each access that is checked
SHARED_BYTES = "ttg.shared"  # i32: shared memory, its callees' included
SCHEDULE = "proton.schedule"  # the schedules of its loops, as text (proton/schedule/plan.py)
# Of a load, what a pass asks of the first-level cache alone, in the place of an eviction policy.
EVICT_FIRST_FROM_L1, EVICT_LAST_FROM_L1 = "l1_evict_first", "l1_evict_last"
REREAD_BYTES = "ttg.reread_bytes"  # i64: what a program reads until it begins to read it again
SCOPES = "proton.scopes"  # all scope paths, in source order
SCOPES_AROUND = "proton.scopes_around"  # the scope that all calls of the function are in
SCOPE_LINES = "proton.scope_lines"  # [file, line] of each, where it is opened
AUTO_SCOPES = "proton.auto_scopes"  # of scopes that the compiler made, their Origin (records.py)
PROGRAM_ORDER = "proton.program_order"  # unit: nothing moves across records
SCOPE_TABLE = "proton.table"  # the ScopeTable, once records have numbers (profile.py)
DESCRIBES_LOADS = "proton.describes_loads"  # of a module: arguments that strides are made of
ASKS_WARPS = "proton.asks_warps"  # unit, of a module: its code knows how many there are
SINGLE_BUFFERS = "ttg.single_buffers"  # unit, of a module: a loop copies to one, for want of room
TENSOR_MAPS = "ttng.tensor_maps"  # what the host makes: the last arguments of a kernel
GLOBAL_SCRATCH_BYTES = "ttg.global_scratch_memory_size"  # i32: global memory of each program
KERNEL_PROFILE = "proton.profile"  # the KernelProfile, once they have places (profile.py)

# On an argument of a function
ARGUMENT_NAME = "tt.name"  # the parameter's
ELEMENT = "tt.element"  # what a pointer points to, as a signature has it
UNSIGNED = "tt.unsigned"  # unit: an integer that has no sign
NON_NEGATIVE = "tt.non_negative"  # unit: a signed integer that is 0 or above
TENSOR_MAP = "ttng.by_value"  # unit: the 128 bytes of a tensor map, by value

# On an argument of a function, or the op that makes a value: i32 for each dimension
DIVISIBILITY = "tt.divisibility"
CONTIGUITY = "tt.contiguity"
CONSTANCY = "tt.constancy"

# Set by `tl.range`, on an `scf.for`
UNROLL_FACTOR = "tt.loop_unroll_factor"  # i32
NUM_STAGES = "tt.num_stages"  # i32: the depth of its software pipeline
FLATTEN = "tt.flatten"  # unit: the next iteration's loads begin while this one ends
WARP_SPECIALIZE = "tt.warp_specialize"  # unit: a warp of its own begins the copies of its loads
DISABLE_LICM = "tt.disable_licm"  # unit

# On an `scf.for`
LOOP_ANNOTATION = "llvm.loop_annotation"  # what LLVM is to make of it; later on its last branch
UNROLLED = "tt.unrolled"  # i32: iterations of the source in one of its own

# On an op
SOURCE_LOOP = "proton.source_loop"  # unit on a loop that is one of the source (label_work.py)
TILE_LOOP = "proton.tile_loop"  # unit on a loop each iteration of which computes a register tile
COPIED_AHEAD = "proton.copied_ahead"  # unit on a view that an iteration copies for the next one
STORED_EXTENT = "proton.stored_extent"  # i64, an axis: on a test whether a store's mask leaves all
READS = "tt.reads"  # unit on a tt.atomic_rmw that changes nothing
FUSED = "ttg.fused"  # unit on a tt.reduce whose operand is a product: its sum is of multiply-adds
RECOMPUTED = "ttg.recomputed"  # unit on a tt.addptr: an instruction each, where it stands
EXCHANGE_PARTS = "ttg.exchange_parts"  # i32 on a conversion: so many, one after the other
SHARED_OFFSET = "ttg.offset"  # i32: where its shared memory begins
GLOBAL_SCRATCH_OFFSETS = "ttg.global_scratch_memory_offsets"  # where its global memory begins
AHEAD = "proton.ahead"  # i32: its work is of so many iterations later (asynchronous.py)
ITERATION = "proton.iteration"  # i32: its work is of this iteration of the loop behind it
MOVED = "proton.moved"  # unit: with all else that its scopes hold
AFTER = "proton.after"  # i32: its work is of so many iterations behind those of the loop before it
ORIGIN = "proton.origin"  # on a record that a pass placed: what it is of (records.py)
STORES = "proton.stores"  # unit where a record may be pending: it is stored there
BEHIND_BARRIER = "proton.behind_barrier"  # unit on a reading right behind one
CARRIED = "proton.carried"  # unit on a reading that is pending when an iteration of a loop ends
PLACE = "proton.place"  # i64 on ops while their block is cut: where they are in it
