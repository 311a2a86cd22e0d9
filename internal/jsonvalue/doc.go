// Package jsonvalue is the JSON value model of the protocol.
//
// A value is plain decoded JSON: map[string]any, []any, string, float64, bool or nil. Every number is an IEEE-754
// double (spec: execution, 0.2), so that the same text means the same value, and hashes the same, in every engine.
// Values made here hold no NaN, no infinity and no negative zero, and their strings are valid UTF-8.
//
// There are two readers. Parse is for text that people wrote: it refuses what would be read differently elsewhere
// (duplicate members, lone surrogates, invalid UTF-8, numbers beyond a double, integers that a double changes, members
// named "__proto__"), says where each of these stands, and returns a tree with positions. Decode is for text that an engine
// wrote: it is fast, returns the plain value at once, and forgives what JavaScript's JSON.stringify can write. DecodeExact,
// for text that other programs wrote, says besides which values would change.
//
// Append writes the canonical text that definition hashes are computed over and that records are stored as (spec:
// execution, 9.4). Normalize turns any Go value into the model; it is the one boundary for values from outside.
package jsonvalue
