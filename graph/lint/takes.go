package lint

import (
	"fmt"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// takes are the kinds of input that functions do not fail for, by name and number of arguments. Functions that take any input, and those
// for which it depends on more than the kind, are left out.
var takes = map[string]kinds{
	"abs/0": number | text | array | object, "add/0": array | object, "all/0": array | object, "all/1": array | object,
	"any/0": array | object, "any/1": array | object, "ascii_downcase/0": text, "ascii_upcase/0": text, "capture/1": text, "ceil/0": number,
	"endswith/1": text, "exp/0": number, "explode/0": text, "fabs/0": number, "flatten/0": array | object, "flatten/1": array | object,
	"floor/0": number, "from_entries/0": array | object, "fromdate/0": text, "fromdateiso8601/0": text, "fromjson/0": text,
	"gmtime/0": number, "group_by/1": array, "gsub/2": text, "gsub/3": text, "has/1": null | array | object, "implode/0": array,
	"join/1": array | object, "keys/0": array | object, "keys_unsorted/0": array | object, "length/0": all &^ boolean, "log/0": number,
	"log10/0": number, "log2/0": number, "ltrim/0": text, "map/1": array | object, "map_values/1": array | object, "match/1": text, "match/2": text,
	"max/0": array, "max_by/1": array, "min/0": array, "min_by/1": array, "mktime/0": array, "reverse/0": array, "round/0": number,
	"rtrim/0": text, "scan/1": text, "sort/0": array, "sort_by/1": array, "split/1": text, "split/2": text, "splits/1": text, "sqrt/0": number,
	"startswith/1": text, "strftime/1": number | array, "strptime/1": text, "sub/2": text, "sub/3": text, "test/1": text, "test/2": text,
	"to_entries/0": array | object, "todate/0": number | array, "tonumber/0": number | text, "transpose/0": array, "trim/0": text, "trunc/0": number,
	"unique/0": array, "unique_by/1": array, "utf8bytelength/0": text, "with_entries/1": array | object,
}

// iterated are the kinds that .[] does not fail for.
const iterated = array | object

// failing reports a function that fails for whatever its input may be. Where a failure is caught, or the program has asked for the kind of
// a value, it may be meant, or never happen.
func (w *walker) failing(name string, in *shape, takes kinds) {
	if in.unsure || in.kinds == nothing || in.kinds&takes != nothing || w.lenient > 0 {
		return
	}
	hint := ""
	switch {
	case in.kinds&text != 0 && takes&number != 0:
		hint = "put tonumber before it"
	case in.kinds&number != 0 && takes&text != 0:
		hint = "put tostring before it"
	case in.kinds&array != 0 && in.items.kinds&takes != nothing:
		hint = fmt.Sprintf("apply it to each element: map(%s)", name)
	}
	w.say(problem.ExpressionFailed, fmt.Sprintf("%s fails: it gets %s, and needs %s", name, in.kinds, takes), hint)
}

// condition checks a condition, and reports whether it tests the kind of a value: the dependent part may then be reached with fewer
// kinds than are known.
func (w *walker) condition(q *gojq.Query, in *shape) bool {
	before := w.asked
	w.query(q, in)
	return w.asked > before
}

// guarded returns the shape of the part that depends on a condition, which is doubtful if the condition tests kinds.
func (w *walker) guarded(doubtful bool, q *gojq.Query, in *shape) *shape {
	if doubtful {
		w.lenient++
		defer func() { w.lenient-- }()
	}
	return w.query(q, in)
}
