package run

import (
	"context"
	"strconv"
	"strings"
	"unicode"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

type key struct{}

// WithActor returns a context with an actor; the zero value removes it. It cuts texts to a bound and escapes characters that cannot be
// printed, since clients write them.
func WithActor(ctx context.Context, a history.Actor) context.Context {
	a = history.Actor{
		Via: plain(a.Via, history.MaxActorShort), Name: plain(a.Name, history.MaxActorName), Title: plain(a.Title, history.MaxActorName), Version: plain(a.Version, history.MaxActorShort),
	}
	switch {
	case a != history.Actor{}:
		return context.WithValue(ctx, key{}, &a)
	case ActorOf(ctx) == nil:
		return ctx
	}
	return context.WithValue(ctx, key{}, (*history.Actor)(nil))
}

// WithoutActor returns a context for the engine's own actions after a call.
func WithoutActor(ctx context.Context) context.Context { return WithActor(ctx, history.Actor{}) }

// ActorOf returns the actor of a context, nil without one.
func ActorOf(ctx context.Context) *history.Actor {
	a, _ := ctx.Value(key{}).(*history.Actor)
	return a
}

// Sign names the context's actor in the first record of a call.
func Sign(ctx context.Context, records []history.Record) {
	SignAs(ActorOf(ctx), records)
}

// SignAs names an actor, unless nil, in the first record of a call.
func SignAs(a *history.Actor, records []history.Record) {
	if a != nil && len(records) > 0 {
		records[0].Payload.Actor = a
	}
}

// SignInput is Sign for the records of an input, if the input comes from outside.
func SignInput(ctx context.Context, in machine.Input, records []history.Record) {
	switch in := in.(type) {
	case machine.Resume, machine.Signal, machine.Cancel:
		Sign(ctx, records)
	case machine.Outcome:
		if in.Host {
			Sign(ctx, records)
		}
	}
}

// plain returns at most that many bytes of a text, and "…" if there are more.
func plain(text string, most int) string {
	var b strings.Builder
	for _, r := range text {
		shown := string(r)
		if !unicode.IsPrint(r) {
			shown = strconv.QuoteRune(r)
			shown = shown[1 : len(shown)-1]
		}
		if b.Len()+len(shown) > most {
			return b.String() + "…"
		}
		b.WriteString(shown)
	}
	return b.String()
}
