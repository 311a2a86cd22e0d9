// Package jsondelta computes and applies the difference of two plain JSON objects. The cost of a delta grows with the
// difference.
//
// A delta is plain JSON itself. The delta of an object is
//
//	{"set": {name: value}, "drop": [name], "in": {name: delta}}
//
// and the delta of an array, whose elements keep their places, is
//
//	{"keep": n, "put": {index: value}, "in": {index: delta}, "add": [value]}
//
// Empty fields are left out; keep is set if the array becomes shorter. An array that has grown at its end costs the
// new elements.
//
// Values at the same address are not compared further. States of workflows are never changed in place and share
// unchanged parts, so that comparing two of them is cheap.
package jsondelta
