// Package jsonvalue is the JSON value model of the protocol.
//
// A value is plain decoded JSON: map[string]any, []any, string, float64, bool or nil. Every number is an IEEE-754
// double (spec: execution, 0.2), so that the same text means the same value, and hashes the same, in every engine.
// Values made here hold no NaN, no infinity and no negative zero, and their strings are valid UTF-8.
//
// There are two readers. Parse is for text from people: it rejects text that other readers read differently
// (duplicate members, lone surrogates, invalid UTF-8, numbers beyond a double, integers that a double changes,
// members named "__proto__"), reports the place of each, and returns a tree with positions. Decode is for text from
// an engine: it is fast, returns the plain value, and accepts the output of JavaScript's JSON.stringify. DecodeExact,
// for text from other programs, also reports the values that would change.
//
// Append writes the canonical text, which is hashed and stored (spec: execution, 9.4). Normalize turns any Go value
// into the model; all values from outside pass it.
package jsonvalue
