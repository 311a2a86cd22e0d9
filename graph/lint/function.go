package lint

import (
	"strconv"
	"strings"

	"github.com/itchyny/gojq"
)

// results are functions whose outputs have one kind, whatever their input, by name and number of arguments. Their arguments are
// evaluated on their input.
var results = map[string]kinds{
	"not/0": boolean, "has/1": boolean, "contains/1": boolean, "inside/1": boolean, "startswith/1": boolean, "endswith/1": boolean,
	"test/1": boolean, "test/2": boolean, "isempty/1": boolean,
	"length/0": number, "utf8bytelength/0": number, "tonumber/0": number, "floor/0": number, "ceil/0": number, "round/0": number,
	"sqrt/0": number, "now/0": number, "range/1": number, "range/2": number,
	"tostring/0": text, "tojson/0": text, "ascii_downcase/0": text, "ascii_upcase/0": text, "trim/0": text, "ltrim/0": text, "rtrim/0": text,
	"todate/0": text, "sub/2": text, "gsub/2": text, "sub/3": text, "gsub/3": text, "strftime/1": text, "implode/0": text,
	"index/1": number | null, "rindex/1": number | null, "join/1": text | null,
}

// function returns the shape of a call's output.
func (w *walker) function(f *gojq.Func, in *shape) *shape {
	if strings.HasPrefix(f.Name, "$") {
		return w.variable(f.Name)
	}
	if w.functions[f.Name] {
		w.asked++ // what it asks for is not known
		return w.arguments(f, anything)
	}
	if k, ok := takes[f.Name+"/"+strconv.Itoa(len(f.Args))]; ok {
		w.failing(f.Name, in, k)
	}
	switch len(f.Args) {
	case 0:
		return w.plainFunction(f.Name, in)
	case 1:
		return w.filterFunction(f, in)
	}
	if k, ok := results[f.Name+"/"+strconv.Itoa(len(f.Args))]; ok {
		w.arguments(f, in)
		return only(k)
	}
	switch f.Name {
	case "any", "all":
		w.query(f.Args[1], w.query(f.Args[0], in))
		return only(boolean)
	case "limit":
		w.query(f.Args[0], in)
		return w.query(f.Args[1], in)
	case "first", "last":
		return w.query(f.Args[0], in)
	}
	return w.arguments(f, anything)
}

// arguments checks the arguments of a call that is known only by their input.
func (w *walker) arguments(f *gojq.Func, in *shape) *shape {
	for _, arg := range f.Args {
		w.query(arg, in)
	}
	return anything
}

// plainFunction returns the shape of the output of a function without arguments.
func (w *walker) plainFunction(name string, in *shape) *shape {
	if k, ok := results[name+"/0"]; ok {
		return only(k)
	}
	switch name {
	case "type", "nulls", "booleans", "numbers", "strings", "arrays", "objects", "scalars", "iterables":
		w.asked++
	}
	switch name {
	case "empty", "error", "halt":
		return &shape{}
	case "any", "all":
		return only(boolean)
	case "type":
		return oneOf("null", "boolean", "number", "string", "array", "object")
	case "keys", "keys_unsorted":
		return listOf(only(text | number))
	case "first", "last", "min", "max":
		if in.is(array | null) {
			return w.itemsOf(in).orNull()
		}
	case "sort", "unique", "reverse":
		if in.is(array) {
			return in
		}
	case "add":
		if items := w.itemsOf(in); items.is(number) || items.is(text) {
			return items.limited(number | text).orNull().untold()
		}
	case "to_entries":
		key := only(text)
		if in.kinds&array != 0 {
			key = only(text | number) // the indices of a list
		}
		return listOf(record(map[string]*shape{"key": key, "value": w.itemsOf(in)}))
	case "values":
		return in.limited(all &^ null)
	case "strings":
		return in.limited(text)
	case "numbers":
		return in.limited(number)
	case "booleans":
		return in.limited(boolean)
	case "arrays":
		return in.limited(array)
	case "objects":
		return in.limited(object)
	}
	return anything
}

// filterFunction returns the shape of the output of a function of one argument. For most of them the argument is a filter.
func (w *walker) filterFunction(f *gojq.Func, in *shape) *shape {
	arg := f.Args[0]
	if k, ok := results[f.Name+"/1"]; ok {
		w.query(arg, in)
		return only(k)
	}
	switch f.Name {
	case "select":
		if w.condition(arg, in) {
			return in.doubted()
		}
		return in
	case "map":
		return listOf(w.query(arg, w.itemsOf(in)))
	case "any", "all":
		w.query(arg, w.itemsOf(in))
		return only(boolean)
	case "sort_by", "unique_by", "group_by":
		w.query(arg, w.itemsOf(in))
		switch {
		case !in.is(array):
			return anything
		case f.Name == "group_by":
			return listOf(in)
		}
		return in
	case "min_by", "max_by":
		w.query(arg, w.itemsOf(in))
		if in.is(array | null) {
			return w.itemsOf(in).orNull()
		}
		return anything
	case "map_values":
		w.query(arg, w.itemsOf(in))
		return anything
	case "first", "last":
		return w.query(arg, in)
	case "with_entries":
		w.query(arg, record(map[string]*shape{"key": only(text | number), "value": w.itemsOf(in)}))
		return anything
	case "split":
		w.query(arg, in)
		return listOf(only(text))
	case "IN":
		w.among(arg, in)
		return only(boolean)
	case "error":
		w.query(arg, in)
		return &shape{}
	case "del", "path", "paths", "getpath", "to_entries", "delpaths", "pick":
		w.quiet++
		w.query(arg, in)
		w.quiet--
		return anything
	case "ltrimstr", "rtrimstr", "add", "ascii", "flatten", "splits", "match", "capture", "scan":
		w.query(arg, in)
		return anything
	}
	return w.arguments(f, anything)
}

// among compares a value with each of the alternatives of an argument.
func (w *walker) among(q *gojq.Query, in *shape) {
	if q.Op == gojq.OpComma {
		w.among(q.Left, in)
		w.among(q.Right, in)
		return
	}
	comparison := &gojq.Query{Left: &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIdentity}}, Op: gojq.OpEq, Right: q}
	w.compare(comparison, in, w.query(q, in))
}

// untold returns a shape of any texts.
func (s *shape) untold() *shape {
	out := *s
	out.texts = nil
	return &out
}
