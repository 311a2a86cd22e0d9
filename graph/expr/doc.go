// Package expr evaluates the protocol's expressions: jq programs over the bare state object (spec: execution, 4;
// definition, 11), with a budget for time, outputs and size. It performs no I/O; programs see no environment, no
// modules and no further input.
package expr
