package history

import "strings"

// Actor is who made a call, as the caller says: nothing of it is authenticated.
type Actor struct {
	// Via is the way of the call: "mcp" for a tool call, "elicitation" for an answer that an MCP host has asked a person for, "command" for
	// the command line, or what an embedder chose.
	Via string
	// Name is the client's name for the first two, the user's name in the operating system for a command.
	Name string
	// Title and Version are a client's.
	Title   string
	Version string
}

// String returns the actor for people, as in "claude-code 2.1 (mcp)".
func (a *Actor) String() string {
	if a.Name == "" {
		return a.Via
	}
	text := strings.TrimSpace(a.Name + " " + a.Version)
	if a.Via != "" {
		text += " (" + a.Via + ")"
	}
	return text
}

// MaxActorName and MaxActorShort are how many bytes of an actor's texts are recorded: of the name and the title, and of the others. A
// longer text ends with "…" instead.
const (
	MaxActorName  = 64
	MaxActorShort = 32
)

// short reports whether an actor is as one is recorded.
func (a *Actor) short() bool {
	line := func(text string, most int) bool { return len(strings.TrimSuffix(text, "…")) <= most && Seen(text) }
	return line(a.Via, MaxActorShort) && line(a.Name, MaxActorName) && line(a.Title, MaxActorName) && line(a.Version, MaxActorShort)
}

// actorMembers are the members of the object that an Actor is stored as.
var actorMembers = []member[Actor]{
	{"via", func(a *Actor) any { return &a.Via }},
	{"name", func(a *Actor) any { return &a.Name }},
	{"title", func(a *Actor) any { return &a.Title }},
	{"version", func(a *Actor) any { return &a.Version }},
}

func (w *objectWriter) actor(name string, a *Actor) {
	if a != nil {
		w.open(name)
		writeObject(w, actorMembers, a, "")
		w.buf = append(w.buf, '}')
	}
}

// readActor returns nil unless v is an object.
func readActor(v any) *Actor {
	m := object(v)
	if m == nil {
		return nil
	}
	var a Actor
	readObject(m, actorMembers, &a)
	return &a
}
