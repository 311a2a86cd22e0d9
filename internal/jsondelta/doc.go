// Package jsondelta computes and applies the difference of two plain JSON objects. A delta costs what differs.
//
// A delta is plain JSON itself. The delta of an object is
//
//	{"set": {name: value}, "drop": [name], "in": {name: delta}}
//
// and the delta of a list, whose elements keep their places, is
//
//	{"keep": n, "put": {index: value}, "in": {index: delta}, "add": [value]}
//
// Empty members are left out; keep is set if the list becomes shorter. So a list that has grown at its end costs what was
// added.
//
// Values at the same address are not compared further. States of workflows are never changed in place and share what stays
// the same, so comparing two of them costs little more than what has changed.
package jsondelta
