package agentloop

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// fetchTool reads results whose previews the model has seen. It is built in and has no gate: the agent already owns these results.
func fetchTool() Tool {
	whole := func(least float64, what string) map[string]any {
		return map[string]any{"type": "integer", "minimum": least, "description": what}
	}
	return Tool{
		Name: fetchResult, Source: sourceResults, Parallel: true, ReadOnly: true, OnCrash: crashRepeat,
		Description: "Reads an earlier result of a tool by its ref, a part at a time. Parts of a list are items, of anything else characters. next_offset says where the next part begins.",
		Parameters: map[string]any{
			"type": "object", "required": []any{"ref"}, "additionalProperties": false,
			"properties": map[string]any{
				"ref":    map[string]any{"type": "string", "minLength": 1.0},
				"offset": whole(0, "Where the part begins; 0 by default."),
				"limit":  whole(1, "How long the part is at most."),
				"path":   map[string]any{"type": "string", "minLength": 1.0, "description": "A part of the result, such as .items[100:120] or .orders[3].lines: it is read instead, from results of any size."},
				"jq":     map[string]any{"type": "string", "minLength": 1.0, "description": "A jq program over the result, such as .items[] | select(.price > 5) | .name; its output is read instead."},
			},
		},
	}
}

// Tool is the name of the tool.
func (e FetchResult) Tool() string { return fetchResult }

// View is the part of a result that a model reads.
type View struct {
	// Offset and Limit count items of an array, and characters of other values. A Limit of 0 means no limit.
	Offset, Limit int
	// Path is a part of the result, such as .items[100:120]; "" is all of it.
	Path string
	// JQ is a program over the result, or the part above; it may be "".
	JQ string
	// MaxChars bounds the part.
	MaxChars int
}

func (a *agent) view(c *call) View {
	count := func(name string) int { // the schema allows numbers of any size
		n, _ := c.args[name].(float64)
		return int(min(max(n, 0), maxCount))
	}
	return View{Offset: count("offset"), Limit: count("limit"), Path: c.text("path"), JQ: c.text("jq"), MaxChars: a.cfg.Results.MaxChars}
}

// owns reports whether a ref can be that of a result of the agent itself: not of one above or below it.
func (a *agent) owns(ref string) bool {
	own, ok := strings.CutPrefix(ref, a.prefix)
	turn, number, dotted := strings.Cut(own, ".c")
	digits := func(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }
	return ok && dotted && strings.HasPrefix(turn, "t") && digits(turn[1:]) && digits(number)
}

func refUnknown(ref string) string {
	return problem.Format("there is no result with ref %q: give a ref as it stands in one of your results", problem.Clip(ref, problem.MaxQuoted))
}

// NoResult is the failure of a ref that names no result.
func NoResult(ref string) *Failure { return &Failure{Code: RefUnknown, Message: refUnknown(ref)} }

// Of returns a part of a recorded result, the body of its journal entry. The failure is written for the model.
func (v View) Of(ref string, step map[string]any) (any, *Failure) {
	result, _ := agentsteps.Read(StepResult, step).(*agentsteps.Result)
	if !result.HasOutput {
		return nil, NoResult(ref)
	}
	value := result.Output
	if v.Path != "" {
		l, texts := split(value, jsonvalue.Size(value, 0)+1, pieceBytes)
		return v.OfLarge(ref, l, func(i int) (string, *Failure) { return texts[i], nil })
	}
	if v.JQ != "" {
		var f *Failure
		if value, f = v.evaluate(value); f != nil {
			return nil, f
		}
	}
	return v.of(value), nil
}

// of returns a part of a value.
func (v View) of(value any) any {
	switch value := value.(type) {
	case []any:
		return v.items(value)
	case string:
		return v.characters("text", value)
	}
	text := string(jsonvalue.Canonical(value))
	if v.Offset == 0 && v.Limit == 0 && len(text) <= v.MaxChars {
		return map[string]any{"value": value}
	}
	return v.characters("json", text)
}

// evaluate runs the program. It has no clock, and the budget of any expression.
func (v View) evaluate(value any) (any, *Failure) {
	_, err := expr.Compile(v.JQ)
	if err == nil {
		var p *expr.Program
		if p, err = expr.Compile(".result | (\n" + v.JQ + "\n)"); err == nil {
			if value, err = p.EvalAt(map[string]any{"result": value}, expr.Env{}); err == nil {
				return value, nil
			}
		}
	}
	return nil, failureFrom(err)
}

// failureFrom is an error that the model is told of.
func failureFrom(err error) *Failure {
	f := &Failure{Code: problem.ExpressionFailed, Message: err.Error()}
	if e, ok := errors.AsType[*problem.Error](err); ok {
		f.Code = e.Code
	}
	return f
}

// items returns items of a list, as many as have room.
func (v View) items(list []any) any {
	from := min(v.Offset, len(list))
	most := len(list)
	if v.Limit > 0 {
		most = min(from+v.Limit, most)
	}
	to, size := from, 0
	for to < most {
		if size += jsonvalue.Size(list[to], v.MaxChars) + 1; size > v.MaxChars {
			break
		}
		to++
	}
	out := map[string]any{"offset": float64(from), "of": float64(len(list))}
	if to == from && from < most { // the item alone is too long
		text := string(jsonvalue.Canonical(list[from]))
		out["item_beginning"], out["item_bytes"] = jsonvalue.FirstUnits(text, v.MaxChars), float64(len(text))
		out["note"] = "This item is too long to be read at once. Pick a part of it with jq."
		to++
	} else {
		out["items"] = list[from:to:to]
	}
	if to < len(list) {
		out["next_offset"] = float64(to)
	}
	return out
}

// characters returns a part of a text.
func (v View) characters(name, text string) any {
	count := utf8.RuneCountInString(text)
	from := min(v.Offset, count)
	to := min(from+v.MaxChars, count)
	if v.Limit > 0 {
		to = min(to, from+v.Limit)
	}
	skip := func(text string, n int) int {
		for i := range text {
			if n == 0 {
				return i
			}
			n--
		}
		return len(text)
	}
	begin := skip(text, from)
	out := map[string]any{name: text[begin : begin+skip(text[begin:], to-from)], "offset": float64(from), "of": float64(count)}
	if to < count {
		out["next_offset"] = float64(to)
	}
	return out
}
