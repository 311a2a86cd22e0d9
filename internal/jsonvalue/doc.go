// Package jsonvalue is the JSON value model of the protocol.
//
// A value is plain decoded JSON: map[string]any, []any, string, float64, bool or nil. Every number is an IEEE-754
// double (spec: execution, 0.2), so that the same text means the same value, and hashes the same, in every engine.
//
// Parse reads text strictly and keeps positions, so that problems can point at a line; Append writes the canonical
// text that definition hashes are computed over; Normalize turns any Go value into the model.
package jsonvalue
