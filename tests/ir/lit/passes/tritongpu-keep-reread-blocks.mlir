// RUN: proton-opt --pipeline='tritongpu-keep-reread-blocks' %s | filecheck %s

// A row that the program reads for its sum stays; where it is read again, it may leave. A modifier
// that says no more than that the cache is used gives way to that, any other priority does not.

// CHECK-LABEL: func.func @row(
// CHECK-SAME: attributes {ttg.reread_bytes = 1024 : i64}
// CHECK: scf.for
// CHECK: "tt.load"(%{{.*}}) {cache = "", evict = "l1_evict_last"
// CHECK-NEXT: "tt.load"(%{{.*}}) {cache = "", evict = "evict_first"
// CHECK: scf.for
// CHECK: "tt.load"(%{{.*}}) {cache = "", evict = "l1_evict_first"
// CHECK-NEXT: "tt.load"(%{{.*}}) {cache = "", evict = ""
// CHECK: "tt.store"
func.func @row(%x: !tt.ptr<f32>, %g: !tt.ptr<f32>, %stride: i32, %n: i32, %zero: i32, %step: i32) {
  %pid = "tt.get_program_id"() {axis = 0 : i32} : () -> i32
  %start = arith.muli %pid, %stride : i32
  %row = "tt.addptr"(%x, %start) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
  %other = "tt.addptr"(%g, %start) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
  %range = "tt.make_range"() {start = 0 : i32, end = 256 : i32} : () -> tensor<256xi32>
  scf.for %i = %zero to %n step %step : i32 {
    %first = "tt.splat"(%i) : (i32) -> tensor<256xi32>
    %places = arith.addi %first, %range : tensor<256xi32>
    %rows = "tt.splat"(%row) : (!tt.ptr<f32>) -> tensor<256x!tt.ptr<f32>>
    %p = "tt.addptr"(%rows, %places) : (tensor<256x!tt.ptr<f32>>, tensor<256xi32>) -> tensor<256x!tt.ptr<f32>>
    %others = "tt.splat"(%other) : (!tt.ptr<f32>) -> tensor<256x!tt.ptr<f32>>
    %q = "tt.addptr"(%others, %places) : (tensor<256x!tt.ptr<f32>>, tensor<256xi32>) -> tensor<256x!tt.ptr<f32>>
    %a = "tt.load"(%p) {cache = ".ca", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<256x!tt.ptr<f32>>) -> tensor<256xf32>
    %b = "tt.load"(%q) {cache = "", evict = "evict_first", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<256x!tt.ptr<f32>>) -> tensor<256xf32>
  }
  scf.for %i = %zero to %n step %step : i32 {
    %first = "tt.splat"(%i) : (i32) -> tensor<256xi32>
    %places = arith.addi %first, %range : tensor<256xi32>
    %rows = "tt.splat"(%row) : (!tt.ptr<f32>) -> tensor<256x!tt.ptr<f32>>
    %p = "tt.addptr"(%rows, %places) : (tensor<256x!tt.ptr<f32>>, tensor<256xi32>) -> tensor<256x!tt.ptr<f32>>
    %others = "tt.splat"(%other) : (!tt.ptr<f32>) -> tensor<256x!tt.ptr<f32>>
    %q = "tt.addptr"(%others, %places) : (tensor<256x!tt.ptr<f32>>, tensor<256xi32>) -> tensor<256x!tt.ptr<f32>>
    %a = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<256x!tt.ptr<f32>>) -> tensor<256xf32>
    %b = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<256x!tt.ptr<f32>>) -> tensor<256xf32>
    "tt.store"(%p, %a) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<256x!tt.ptr<f32>>, tensor<256xf32>) -> ()
  }
  return
}

// Pointers that loops carry; and loops around them that count alike, as channels of a group.

// CHECK-LABEL: func.func @carried(
// CHECK: "tt.load"(%{{.*}}) {cache = "", evict = "l1_evict_last"
// CHECK: "tt.load"(%{{.*}}) {cache = "", evict = "l1_evict_first"
func.func @carried(%x: !tt.ptr<f32>, %n: i32, %zero: i32, %step: i32, %move: tensor<256xi32>) {
  %pid = "tt.get_program_id"() {axis = 0 : i32} : () -> i32
  %row = "tt.addptr"(%x, %pid) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
  scf.for %c = %zero to %pid step %step : i32 {
    %channel = "tt.addptr"(%row, %c) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %begin = "tt.splat"(%channel) : (!tt.ptr<f32>) -> tensor<256x!tt.ptr<f32>>
    %end = scf.for %i = %zero to %n step %step iter_args(%p = %begin) -> (tensor<256x!tt.ptr<f32>>) : i32 {
      %a = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<256x!tt.ptr<f32>>) -> tensor<256xf32>
      %next = "tt.addptr"(%p, %move) : (tensor<256x!tt.ptr<f32>>, tensor<256xi32>) -> tensor<256x!tt.ptr<f32>>
      scf.yield %next : tensor<256x!tt.ptr<f32>>
    }
  }
  scf.for %c = %zero to %pid step %step : i32 {
    %channel = "tt.addptr"(%row, %c) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %begin = "tt.splat"(%channel) : (!tt.ptr<f32>) -> tensor<256x!tt.ptr<f32>>
    %end = scf.for %i = %zero to %n step %step iter_args(%p = %begin) -> (tensor<256x!tt.ptr<f32>>) : i32 {
      %a = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<256x!tt.ptr<f32>>) -> tensor<256xf32>
      %next = "tt.addptr"(%p, %move) : (tensor<256x!tt.ptr<f32>>, tensor<256xi32>) -> tensor<256x!tt.ptr<f32>>
      scf.yield %next : tensor<256x!tt.ptr<f32>>
    }
  }
  return
}

// Nothing is said of what other programs load as well, of loops that go elsewhere, of what is
// loaded anew in each turn of a loop around it, nor of two ways of which a program takes one.

// CHECK-LABEL: func.func @unmarked(
// CHECK-NOT: evict_
// CHECK: return
func.func @unmarked(%x: !tt.ptr<f32>, %n: i32, %m: i32, %zero: i32, %step: i32, %yes: i1) {
  %pid = "tt.get_program_id"() {axis = 0 : i32} : () -> i32
  %row = "tt.addptr"(%x, %pid) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
  %range = "tt.make_range"() {start = 0 : i32, end = 256 : i32} : () -> tensor<256xi32>
  %all = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<256x!tt.ptr<f32>>
  %mine = "tt.splat"(%row) : (!tt.ptr<f32>) -> tensor<256x!tt.ptr<f32>>
  scf.for %i = %zero to %n step %step : i32 {
    %first = "tt.splat"(%i) : (i32) -> tensor<256xi32>
    %p = "tt.addptr"(%all, %first) : (tensor<256x!tt.ptr<f32>>, tensor<256xi32>) -> tensor<256x!tt.ptr<f32>>
    %q = "tt.addptr"(%mine, %first) : (tensor<256x!tt.ptr<f32>>, tensor<256xi32>) -> tensor<256x!tt.ptr<f32>>
    %a = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<256x!tt.ptr<f32>>) -> tensor<256xf32>
    %b = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<256x!tt.ptr<f32>>) -> tensor<256xf32>
    %c = "tt.load"(%mine) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<256x!tt.ptr<f32>>) -> tensor<256xf32>
  }
  scf.for %i = %zero to %n step %step : i32 {
    %first = "tt.splat"(%i) : (i32) -> tensor<256xi32>
    %p = "tt.addptr"(%all, %first) : (tensor<256x!tt.ptr<f32>>, tensor<256xi32>) -> tensor<256x!tt.ptr<f32>>
    %a = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<256x!tt.ptr<f32>>) -> tensor<256xf32>
    %c = "tt.load"(%mine) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<256x!tt.ptr<f32>>) -> tensor<256xf32>
  }
  scf.for %i = %zero to %m step %step : i32 {
    %first = "tt.splat"(%i) : (i32) -> tensor<256xi32>
    %q = "tt.addptr"(%mine, %first) : (tensor<256x!tt.ptr<f32>>, tensor<256xi32>) -> tensor<256x!tt.ptr<f32>>
    %b = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<256x!tt.ptr<f32>>) -> tensor<256xf32>
  }
  scf.if %yes {
    scf.for %i = %zero to %step step %step : i32 {
      %first = "tt.splat"(%i) : (i32) -> tensor<256xi32>
      %q = "tt.addptr"(%mine, %first) : (tensor<256x!tt.ptr<f32>>, tensor<256xi32>) -> tensor<256x!tt.ptr<f32>>
      %b = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<256x!tt.ptr<f32>>) -> tensor<256xf32>
    }
  } else {
    scf.for %i = %zero to %step step %step : i32 {
      %first = "tt.splat"(%i) : (i32) -> tensor<256xi32>
      %q = "tt.addptr"(%mine, %first) : (tensor<256x!tt.ptr<f32>>, tensor<256xi32>) -> tensor<256x!tt.ptr<f32>>
      %b = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<256x!tt.ptr<f32>>) -> tensor<256xf32>
    }
  }
  return
}

// What a program reads until it begins anew: here a block in each of three turns, in four turns
// that count from where the program's channels begin. A loop around both readings does not count.

// CHECK-LABEL: func.func @channels(
// CHECK-SAME: attributes {ttg.reread_bytes = 24576 : i64}
func.func @channels(%x: !tt.ptr<f32>, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %three = arith.constant 3 : i32
  %four = arith.constant 4 : i32
  %pid = "tt.get_program_id"() {axis = 0 : i32} : () -> i32
  %range = "tt.make_range"() {start = 0 : i32, end = 512 : i32} : () -> tensor<512xi32>
  %all = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<512x!tt.ptr<f32>>
  %bases = "tt.addptr"(%all, %range) : (tensor<512x!tt.ptr<f32>>, tensor<512xi32>) -> tensor<512x!tt.ptr<f32>>
  scf.for %row = %zero to %n step %one : i32 {
    %place = arith.muli %pid, %n : i32
    %number = arith.addi %place, %row : i32
    %begin = arith.muli %number, %four : i32
    %next = arith.addi %number, %one : i32
    %end = arith.muli %next, %four : i32
    scf.for %i = %begin to %end step %one : i32 {
      scf.for %j = %zero to %three step %one : i32 {
        %a0 = arith.muli %i, %three : i32
        %a1 = arith.addi %a0, %j : i32
        %a2 = "tt.splat"(%a1) : (i32) -> tensor<512xi32>
        %p = "tt.addptr"(%bases, %a2) : (tensor<512x!tt.ptr<f32>>, tensor<512xi32>) -> tensor<512x!tt.ptr<f32>>
        %a = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<512x!tt.ptr<f32>>) -> tensor<512xf32>
      }
    }
    scf.for %i = %begin to %end step %one : i32 {
      scf.for %j = %zero to %three step %one : i32 {
        %b0 = arith.muli %i, %three : i32
        %b1 = arith.addi %b0, %j : i32
        %b2 = "tt.splat"(%b1) : (i32) -> tensor<512xi32>
        %p = "tt.addptr"(%bases, %b2) : (tensor<512x!tt.ptr<f32>>, tensor<512xi32>) -> tensor<512x!tt.ptr<f32>>
        %b = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<512x!tt.ptr<f32>>) -> tensor<512xf32>
      }
    }
  }
  return
}
