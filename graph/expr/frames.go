package expr

import (
	"math"
	"strconv"

	"github.com/itchyny/gojq"
)

// The interpreter keeps, until it is exhausted, everything that may have another output: alternatives, iterations, tries,
// collections that are not complete, and the scopes around them. A function that calls itself keeps that in each call. How much it is
// at most the text tells; a call is charged for it as it begins.

// What constructs add to the interpreter's stacks at most, with what these grow by.
const (
	// scopeBytes is what a call of a function that calls itself takes without what is in it.
	scopeBytes    = 256
	forkBytes     = 300
	variableBytes = 48
	argumentBytes = 112
	callBytes     = 180
	memberBytes   = 180
	// builtinBytes is what a function of jq takes while a parameter of it runs, or until it has had all outputs.
	builtinBytes = 600
	// freeFrame is what a call of a function, and a program, may take without being charged.
	freeFrame = 8 << 10
)

// several are the functions of jq that may have several outputs of their own, or end another query early: they keep something until
// they are exhausted. The value says whether they keep in each of their rounds what a parameter has left.
var several = map[string]bool{
	"recurse/1": true, "recurse/2": true, "while/2": true, "until/2": true, "repeat/1": true,
	"recurse/0": false, "_recurse/0": false, "combinations/0": false, "combinations/1": false, "tostream/0": false, "paths/0": false,
	"paths/1": false, "range/1": false, "range/2": false, "range/3": false, "first/1": false, "limit/2": false, "skip/2": false,
	"nth/2": false, "last/1": false, "isempty/1": false, "all/0": false, "all/1": false, "all/2": false, "any/0": false, "any/1": false,
	"any/2": false, "IN/1": false, "IN/2": false, "match/1": false, "match/2": false, "capture/1": false, "capture/2": false,
	"scan/1": false, "scan/2": false, "splits/1": false, "splits/2": false, "sub/2": false, "sub/3": false, "gsub/2": false,
	"gsub/3": false, "fromstream/1": false, "truncate_stream/1": false, "JOIN/3": false, "JOIN/4": false, "inputs/0": false,
}

// weight is what a query keeps at most: kept bytes once it has had an output, open ones while it calls a function, and as many
// times what the parameters of the functions around it keep.
type weight struct{ kept, open, parameters int }

// most is what it keeps at any time that matters.
func (w weight) most() int { return max(w.kept, w.open) }

// around is what a query keeps inside something that takes bytes until it is over.
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

// then is what two queries keep of which the second begins when the first has had an output.
func (w weight) then(v weight) weight {
	v = v.opened(w.kept)
	return weight{min(w.kept+v.kept, maxWeight), max(w.open, v.open), min(w.parameters+v.parameters, maxWeight)}
}

// or is what two queries keep of which the first is over before the second begins.
func (w weight) or(v weight) weight {
	return weight{max(w.kept, v.kept), max(w.open, v.open), max(w.parameters, v.parameters)}
}

// called is what a query keeps in a scope of its own, which stays as long as anything does.
func (w weight) called() weight {
	if w.kept >= forkBytes {
		w.kept += callBytes
	}
	return w
}

// collected is what a query keeps once it has had all outputs.
func (w weight) collected() weight {
	w.kept = variableBytes
	return w
}

// charge lets a query be charged for so many bytes whenever it is run.
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
