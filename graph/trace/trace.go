// Package trace hands the values of a call's context, and the trace parent of a run (W3C Trace Context), to what is performed for it.
package trace

import (
	"context"

	"github.com/workflows-engine/workflows-engine/history"
)

type parentKey struct{}

// With returns a context with a trace parent; one that is not of the form of the header traceparent is left out.
func With(ctx context.Context, parent string) context.Context {
	if parent == "" || !history.IsTraceParent(parent) {
		return ctx
	}
	return context.WithValue(ctx, parentKey{}, parent)
}

// Parent returns the trace parent of a context, "" without one.
func Parent(ctx context.Context) string {
	parent, _ := ctx.Value(parentKey{}).(string)
	return parent
}

// Inherit returns ctx with the values of a call, too. The call's trace parent comes before that of ctx.
func Inherit(ctx, call context.Context) context.Context {
	return With(inherited{ctx, call}, Parent(call))
}

type inherited struct {
	context.Context
	call context.Context
}

func (c inherited) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.call.Value(key)
}
