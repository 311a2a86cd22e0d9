// Package expr evaluates the protocol's expressions: jq programs over the bare state object (spec: execution, 4;
// definition, 11), with a budget that is counted, not timed. It performs no I/O. Programs see no environment, no
// modules and no further input, and only the time that EvalAt is given.
//
//	p, err := expr.Compile(`.intent == "billing" and .confidence > 0.8`)
//	v, err := p.EvalAt(state, expr.Env{Now: now})
//	if expr.Truthy(v) { … }
//
// The interpreter is gojq. This package adds
//
//   - a budget (meter.go). The interpreter checks its context before every instruction, and the context counts. A single
//     instruction is bounded too: operators and functions that could read or make much are replaced by natives that charge
//     first (natives.go, price.go), and regular expressions are charged for every thread (search.go). All memory made is
//     counted, whether it is still held or not. The memory of a call, and the way to a variable, depend on the text and are
//     computed beforehand (outline.go, frames.go, links.go). A limit ends a program at once and cannot be caught. Several
//     evaluations may share a budget;
//   - the protocol's numbers. Operators compute in doubles; results hold no NaN (null), no infinity (the largest
//     double) and no -0;
//   - a guarantee about the state: nothing is ever written to it, so that it needs no copy and may be read by others at
//     the same time. The interpreter's own deletions write to parts that they do not change (edit.go);
//   - room for honest programs over large states: a reduce that builds a text, a list or an object does not copy it in each
//     round (operators.go, rewrite_reduce.go), and regular expressions count characters once (match.go).
//
// All of this is done to the parsed program before it is compiled (rewrite.go): operators and calls become calls of
// natives, and some functions of jq are defined in terms of those (prelude.jq). gojq.md proposes a hook for gojq that
// would replace most of it.
//
// # Differences from jq 1.8
//
// Members of an object are in the order of their names. Regular expressions are Oniguruma's as far as Go's engine and
// package backtrack know them (notation.go): no subexpression calls, no letters that fold to several. The texts of
// caught errors differ (spec: definition, 14.3). keys_unsorted is keys, input_line_number is 0, inputs is empty,
// have_decnum is false. The only time zone is UTC. A halt without a value ends the outputs.
//
// # Cost of an evaluation
//
// At most about a second and 64 MiB, including memory that the collector has not freed yet, on an idle machine with
// two cores (BenchmarkHostile, BenchmarkUnits). A unit is 20 to 50 ns of work. No clock decides a result: the same
// program over the same state ends at the same limit everywhere, or at no limit.
package expr
