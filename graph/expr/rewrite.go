package expr

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"
)

// A rewriter turns a parsed program into one that does the same within limits: operators become calls of natives, and
// so do calls of functions that are natives and that the program does not define itself. It changes the tree in place.
type rewriter struct {
	scope *scope
	// inPrelude allows calls of names that begin with an underscore.
	inPrelude bool
	// natives are those that the rewritten program calls, free the functions it neither defines nor finds there.
	natives map[string]native
	free    map[string]bool
	// strings are the string literals of the program: an error message made of one reveals no value.
	strings map[string]bool
	err     error
}

// scope is a chain of functions that the program defines, the innermost first.
type scope struct {
	// name is the signature, rename its name in the rewritten program if that differs.
	name, rename string
	outer        *scope
}

func newRewriter() *rewriter {
	return &rewriter{natives: map[string]native{}, free: map[string]bool{}, strings: map[string]bool{}}
}

// Names made here cannot be written in a program, so that they are never taken for the program's own.
const (
	valueVariable = "$ value"
	pathVariable  = "$ path"
	firstLabel    = "$ first"
)

// ownNames are the new names of a program's own functions with these names: rewriting needs the interpreter's.
var ownNames = map[string]string{"path/1": "own path", "empty/0": "own empty"}

func signature(name string, arity int) string { return name + "/" + strconv.Itoa(arity) }

// define makes a function of the program visible and returns the name to call it by.
func (r *rewriter) define(name string, arity int) string {
	key := signature(name, arity)
	own := ownNames[key]
	r.scope = &scope{name: key, rename: own, outer: r.scope}
	return cmp.Or(own, name)
}

// fail remembers the first thing that does not compile, and the name that it is about.
func (r *rewriter) fail(name, format string, args ...any) {
	if r.err == nil {
		r.err = &undefinedError{name, fmt.Sprintf(format, args...)}
	}
}

// undefinedError is about a name of the program.
type undefinedError struct{ name, text string }

func (e *undefinedError) Error() string { return e.text }

func (r *rewriter) query(q *gojq.Query) {
	if q == nil {
		return
	}
	outer := r.scope
	defer func() { r.scope = outer }()
	for _, def := range q.FuncDefs {
		r.function(def)
	}
	if q.Term != nil {
		r.term(q.Term)
		return
	}
	r.query(q.Left)
	r.patterns(q.Patterns)
	r.query(q.Right)
	if name := operatorNatives[q.Op]; name != "" {
		r.replace(q, r.native(name, q.Left, q.Right))
	} else if isUpdate(q.Op) {
		r.update(q)
	}
}

// update rewrites an update whose sides have been rewritten: the right side of all but |= is evaluated first, on the
// same input.
func (r *rewriter) update(q *gojq.Query) {
	edit := r.edit(q.Left, r.changed(q))
	if q.Op != gojq.OpModify {
		edit = pipe(q.Right, edit, valueVariable)
	}
	r.replace(q, edit)
}

// changed returns a query for the new value at the path of an edit, in an array; for |= that may be empty.
func (r *rewriter) changed(q *gojq.Query) *gojq.Query {
	switch q.Op {
	case gojq.OpAssign:
		return array(variable(valueVariable))
	case gojq.OpModify:
		return array(r.firstOf(q.Right))
	case gojq.OpUpdateAlt:
		return array(&gojq.Query{Op: gojq.OpAlt, Left: r.oldValue(), Right: variable(valueVariable)})
	}
	return array(r.native(operatorNatives[plainOperator[q.Op]], r.oldValue(), variable(valueVariable)))
}

// replace puts another query in the place of q, with q's definitions.
func (r *rewriter) replace(q, by *gojq.Query) {
	by.Meta, by.Imports, by.FuncDefs = q.Meta, q.Imports, q.FuncDefs
	*q = *by
}

var operatorNatives = map[gojq.Operator]string{
	gojq.OpAdd: "_add", gojq.OpSub: "_subtract", gojq.OpMul: "_multiply", gojq.OpDiv: "_divide", gojq.OpMod: "_modulo",
	gojq.OpEq: "_equal", gojq.OpNe: "_notequal", gojq.OpGt: "_greater", gojq.OpLt: "_less", gojq.OpGe: "_greatereq",
	gojq.OpLe: "_lesseq",
}

var plainOperator = map[gojq.Operator]gojq.Operator{
	gojq.OpUpdateAdd: gojq.OpAdd, gojq.OpUpdateSub: gojq.OpSub, gojq.OpUpdateMul: gojq.OpMul,
	gojq.OpUpdateDiv: gojq.OpDiv, gojq.OpUpdateMod: gojq.OpMod,
}

// native is a call of a native.
func (r *rewriter) native(name string, args ...*gojq.Query) *gojq.Query {
	key := signature(name, len(args))
	r.natives[key] = natives[key]
	return call(nativeName(name, len(args)), args...)
}

// made is a call of a native that this program alone has.
func (r *rewriter) made(name string, arity int, f native, args ...*gojq.Query) *gojq.Query {
	r.natives[signature(name, arity)] = f
	return call(nativeName(name, arity), args...)
}

// nativeName is the interpreter's name of a native; its own functions would come first under the same name.
func nativeName(name string, arity int) string { return nativePrefix + signature(name, arity) }

const nativePrefix = "native "

// edit is an update of all paths: changed is, in an array, the new value for the current path, or an empty array to
// delete.
//
//	reduce path(paths) as $path (_edit; _set($path; changed)) | _done
func (r *rewriter) edit(paths, changed *gojq.Query) *gojq.Query {
	return pipe(&gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeReduce, Reduce: &gojq.Reduce{
		Query:    r.paths(paths),
		Patterns: []*gojq.Pattern{{Name: pathVariable}},
		Start:    r.native("_edit"),
		Update:   r.native("_set", variable(pathVariable), changed),
	}}}, r.native("_done"), "")
}

// paths are the paths of a query, with a charge: the interpreter makes a list of any length in one step.
func (r *rewriter) paths(q *gojq.Query) *gojq.Query {
	return pipe(call("path", q), r.native("_made"), "")
}

// oldValue is the value at the path of an edit.
func (r *rewriter) oldValue() *gojq.Query { return r.native("_get", variable(pathVariable)) }

// firstOf is the first output of update for the value at the path of an edit, or nothing.
//
//	label $first | _get($path) | update | ., break $first
func (r *rewriter) firstOf(update *gojq.Query) *gojq.Query {
	stop := &gojq.Query{
		Op: gojq.OpComma, Left: &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIdentity}},
		Right: &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeBreak, Break: firstLabel}},
	}
	body := pipe(pipe(r.oldValue(), group(update), ""), stop, "")
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeLabel, Label: &gojq.Label{Ident: firstLabel, Body: body}}}
}

func call(name string, args ...*gojq.Query) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name, Args: args}}}
}

func variable(name string) *gojq.Query { return call(name) }

func array(q *gojq.Query) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeArray, Array: &gojq.Array{Query: q}}}
}

func group(q *gojq.Query) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeQuery, Query: q}}
}

// pipe is left | right, or left as $name | right.
func pipe(left, right *gojq.Query, name string) *gojq.Query {
	q := &gojq.Query{Op: gojq.OpPipe, Left: left, Right: right}
	if name != "" {
		q.Patterns = []*gojq.Pattern{{Name: name}}
	}
	return q
}

// function rewrites a definition and makes it visible, to itself too.
func (r *rewriter) function(def *gojq.FuncDef) {
	def.Name = r.define(def.Name, len(def.Args))
	outer := r.scope
	for _, arg := range def.Args {
		r.define(strings.TrimPrefix(arg, "$"), 0)
	}
	r.query(def.Body)
	r.scope = outer
}
