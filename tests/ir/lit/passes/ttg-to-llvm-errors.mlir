// RUN: not proton-opt --pipeline='ttg-to-llvm{target=cuda:90}' %s 2>&1 | filecheck %s
// What an earlier pass should have done.

// CHECK: PassError: ttg.convert_layout has no shared memory: run allocate-shared-memory
#lanes = #ttg.linear<[], [[1], [2], [4], [8], [16]], [[32], [64]], []>
#warps = #ttg.linear<[], [[4], [8], [16], [32], [64]], [[1], [2]], []>
module attributes {"ttg.num-warps" = 4 : i32} {
func.func @exchange(%x: tensor<128xf32, #lanes>) {
  %0 = "ttg.convert_layout"(%x) : (tensor<128xf32, #lanes>) -> tensor<128xf32, #warps>
  return
}
}
