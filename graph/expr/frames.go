package expr

import (
	"math"
	"strconv"

	"github.com/itchyny/gojq"
)

// Until it is exhausted, the interpreter keeps everything that may have another output: alternatives, iterations,
// tries, incomplete collections, and the scopes around them. A recursive function keeps that in each call. The text
// of a function bounds the amount; each call is charged for it as it begins.

// Bounds of the growth of the interpreter's stacks by construct.
const (
	// scopeBytes is the size of a call of a recursive function without its body.
	scopeBytes    = 256
	forkBytes     = 300
	variableBytes = 48
	argumentBytes = 112
	callBytes     = 180
	memberBytes   = 180
	// builtinBytes is the size of a function of jq while a parameter of it runs, or until it is exhausted.
	builtinBytes = 600
	// freeFrame is the size up to which a call of a function, and a program, is not charged.
	freeFrame = 8 << 10
)

// several are the functions of jq that may have several outputs, or end another query early: they keep something
// until they are exhausted. The value is true if each round keeps the rest of a parameter.
var several = map[string]bool{
	"recurse/1": true, "recurse/2": true, "while/2": true, "until/2": true, "repeat/1": true,
	"recurse/0": false, "_recurse/0": false, "combinations/0": false, "combinations/1": false, "tostream/0": false, "paths/0": false,
	"paths/1": false, "range/1": false, "range/2": false, "range/3": false, "first/1": false, "limit/2": false, "skip/2": false,
	"nth/2": false, "last/1": false, "isempty/1": false, "all/0": false, "all/1": false, "all/2": false, "any/0": false, "any/1": false,
	"any/2": false, "IN/1": false, "IN/2": false, "match/1": false, "match/2": false, "capture/1": false, "capture/2": false,
	"scan/1": false, "scan/2": false, "splits/1": false, "splits/2": false, "sub/2": false, "sub/3": false, "gsub/2": false,
	"gsub/3": false, "fromstream/1": false, "truncate_stream/1": false, "JOIN/3": false, "JOIN/4": false, "inputs/0": false,
}

// weight is the most bytes that a query keeps: kept once it has had an output, open while it calls a function.
// parameters is how often it keeps the parameters of the functions around it.
type weight struct{ kept, open, parameters int }

// most is the larger of kept and open.
func (w weight) most() int { return max(w.kept, w.open) }

// around is the weight of a query inside a construct that keeps bytes until it ends.
func (w weight) around(bytes int) weight {
	w.kept = min(w.kept+bytes, maxWeight)
	return w.opened(bytes)
}

// opened is around for something that is over before the output.
func (w weight) opened(bytes int) weight {
	if w.open > 0 {
		w.open = min(w.open+bytes, maxWeight)
	}
	return w
}

// maxWeight is above every limit.
const maxWeight = math.MaxInt32

func saturated(a, b int) int { return min(times(a, b), maxWeight) }

// then is the weight of two queries; the second begins when the first has an output.
func (w weight) then(v weight) weight {
	v = v.opened(w.kept)
	return weight{min(w.kept+v.kept, maxWeight), max(w.open, v.open), min(w.parameters+v.parameters, maxWeight)}
}

// or is the weight of two queries; the second begins when the first is exhausted.
func (w weight) or(v weight) weight {
	return weight{max(w.kept, v.kept), max(w.open, v.open), max(w.parameters, v.parameters)}
}

// called is the weight of a query in a scope of its own.
func (w weight) called() weight {
	if w.kept >= forkBytes {
		w.kept += callBytes
	}
	return w
}

// collected is the weight of an exhausted query.
func (w weight) collected() weight {
	w.kept = variableBytes
	return w
}

// charge makes a query charge for bytes whenever it runs.
func (o *outline) charge(q *gojq.Query, bytes int) {
	name := "_frame " + strconv.Itoa(bytes)
	body := *q
	body.Meta, body.Imports = nil, nil
	by := pipe(o.r.made(name, 0, frame(bytes)), group(&body), "")
	by.Meta, by.Imports = q.Meta, q.Imports
	*q = *by
}

// frame is a native that returns its input and counts memory.
func frame(bytes int) native {
	return func(m *meter, in any, _ []any) any {
		if !m.hold(bytes) {
			return m.exceeded
		}
		return in
	}
}
