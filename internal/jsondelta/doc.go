// Package jsondelta says how one plain JSON object becomes another, at the cost of what differs.
//
// A delta is plain JSON itself. That of an object is
//
//	{"set": {name: value}, "drop": [name], "in": {name: delta}}
//
// and that of a list, whose elements keep their places,
//
//	{"keep": n, "put": {index: value}, "in": {index: delta}, "add": [value]}
//
// Members that say nothing are left out; keep is there when the list becomes shorter. A list that has grown at its end
// therefore costs what was added.
//
// What is one and the same in memory is never looked into. States of workflows are never changed in place and share
// what stays the same, so the comparison of two of them costs what has changed and a glance at the rest.
package jsondelta
