// Package expr evaluates the protocol's expressions: jq programs over the bare state object (spec: execution, 4;
// definition, 11), with a budget that is counted, not timed. It performs no I/O; programs see no environment, no modules
// and no further input, and of the time only what EvalAt is given.
//
//	p, err := expr.Compile(`.intent == "billing" and .confidence > 0.8`)
//	v, err := p.EvalAt(state, expr.Env{Now: now})
//	if expr.Truthy(v) { … }
//
// The interpreter is gojq. Around it this package puts
//
//   - a budget (meter.go). The interpreter asks its context for the end before every instruction, and the context counts.
//     What a single instruction can do is bounded too: operators and functions that could read or make much are
//     replaced by ones that charge for it first (natives.go, price.go), and regular expressions are charged for every
//     thread that they follow (search.go). What an evaluation makes is counted as well, whether it still holds that or not.
//     What a call of a function keeps, and how far the interpreter looks for a variable, depends on the text
//     around them, which is read beforehand (outline.go, frames.go, links.go). A limit ends a program at once and cannot be
//     caught by it. Several evaluations may share a budget;
//   - the protocol's numbers. Operators compute in doubles; results hold no NaN (null), no infinity (the largest
//     double) and no -0;
//   - a guarantee about the state: nothing is ever written to it, so that it needs no copy and may be read by others at
//     the same time. The interpreter's own deletions do write to parts that they leave as they are (edit.go);
//   - what keeps honest programs over large states within the budget: a reduce that builds a text, a list or an object
//     does not copy it in each round (operators.go, rewrite_reduce.go), and regular expressions count characters once
//     (match.go). Both are improvements for the interpreter itself; what it takes over goes here.
//
// All of it is done to the parsed program before it is compiled (rewrite.go): operators and calls become calls of
// natives, and some of jq's functions are defined anew in terms of those (prelude.jq). gojq.md proposes what would make most of it unnecessary.
//
// # What differs from jq 1.8
//
// Members of an object are in the order of their names; regular expressions are Oniguruma's as far as Go's engine and package
// backtrack know them (notation.go): no subexpression calls, no letters that fold to several; the texts of caught errors are others (spec: definition, 14.3). keys_unsorted is keys,
// input_line_number is 0, inputs is empty, have_decnum is false. There is no time zone but UTC. A halt without a value
// ends the outputs.
//
// # What an evaluation takes
//
// At most about a second and 64 MiB, with what Go's collector has not yet found to be free, on a machine with two cores that does nothing
// else. BenchmarkHostile and BenchmarkUnits show it. Prices are chosen such that a unit is 20 to 50 ns of whatever a program does.
// No clock decides a result: the same program over the same state ends at the same limit everywhere, or at none.
package expr
