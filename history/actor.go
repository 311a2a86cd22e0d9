package history

import "strings"

// Actor identifies the caller, as reported by the caller. It is not authenticated.
type Actor struct {
	// Via is the channel of the call: "mcp" for a tool call, "elicitation" for an answer that an MCP host requested from a person, "app"
	// for an answer given in the card of a run in an MCP host, "command" for the command line, or a value chosen by an embedder.
	Via string
	// Name is the client's name for "mcp" and "elicitation", the operating system's user name for "command".
	Name string
	// Title and Version are set for a client.
	Title   string
	Version string
}

// String returns the actor in readable form, such as "claude-code 2.1 (mcp)".
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

// MaxActorName limits Name and Title, MaxActorShort the other fields of a recorded actor, in bytes. A longer text is cut and ends with "…".
const (
	MaxActorName  = 64
	MaxActorShort = 32
)

// short reports whether all fields of an actor are within their limits.
func (a *Actor) short() bool {
	line := func(text string, most int) bool { return len(strings.TrimSuffix(text, "…")) <= most && Seen(text) }
	return line(a.Via, MaxActorShort) && line(a.Name, MaxActorName) && line(a.Title, MaxActorName) && line(a.Version, MaxActorShort)
}

// actorMembers are the fields of the JSON object that stores an Actor.
var actorMembers = []jsonField[Actor]{
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

// readActor returns nil if v is not an object.
func readActor(v any) *Actor {
	m := object(v)
	if m == nil {
		return nil
	}
	var a Actor
	readObject(m, actorMembers, &a)
	return &a
}
