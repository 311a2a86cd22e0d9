package mcphost

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Entry says how a host starts a server.
type Entry struct {
	Command string
	Args    []string
	Env     map[string]string
}

// Program is the name of the engine's MCP server.
const Program = "workflows-engine-mcp"

// Starts reports whether an entry starts the engine's server, itself or by a program such as npx.
func (e Entry) Starts() bool {
	for _, word := range append([]string{e.Command}, e.Args...) {
		if i := strings.LastIndexAny(word, `/\`); strings.TrimSuffix(word[i+1:], ".exe") == Program {
			return true
		}
	}
	return false
}

// member is a member of an object whose order is kept.
type member struct {
	name  string
	value any
}

// members are those that describe the entry, in the order in which they are written.
func (e Entry) members(first []member) []member {
	list := append(slices.Clone(first), member{"command", e.Command})
	if len(e.Args) > 0 {
		list = append(list, member{"args", e.Args})
	}
	if len(e.Env) > 0 {
		list = append(list, member{"env", e.Env})
	}
	return list
}

// merged is what becomes of an entry that is there: the command is e's; arguments are replaced only if e has any, and
// variables that e does not name stay.
func (e Entry) merged(there Entry) Entry {
	if len(e.Args) == 0 {
		e.Args = there.Args
	}
	env := maps.Clone(there.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, e.Env)
	e.Env = env
	return e
}

// entryOf reads an entry from what a file says of a server; what has another type is left out.
func entryOf(value any) (e Entry) {
	object, _ := value.(map[string]any)
	e.Command, _ = object["command"].(string)
	args, _ := object["args"].([]any)
	for _, a := range args {
		if text, ok := a.(string); ok {
			e.Args = append(e.Args, text)
		}
	}
	env, _ := object["env"].(map[string]any)
	for name, v := range env {
		if text, ok := v.(string); ok {
			if e.Env == nil {
				e.Env = map[string]string{}
			}
			e.Env[name] = text
		}
	}
	return e
}

// object is the JSON object of members, compact.
func object(list []member) []byte {
	out := []byte{'{'}
	for i, m := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, compact(m.name)...), ':'), compact(m.value)...)
	}
	return append(out, '}')
}

// compact is a value as JSON.
func compact(value any) []byte {
	if list, ok := value.([]member); ok {
		return object(list)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return []byte("null") // never: values are texts, lists and maps of texts
	}
	return bytes.TrimRight(out.Bytes(), "\n")
}

// Print returns what to paste into the host's file.
func (h Host) Print(name string, e Entry) string {
	if h.toml {
		return string(tables(h.key, name, e, nil))
	}
	var out bytes.Buffer
	// Indent fails on invalid JSON only.
	_ = json.Indent(&out, object([]member{{h.key, []member{{name, e.members(h.first)}}}}), "", "  ")
	return out.String() + "\n"
}

// Link returns the address that installs the server when it is opened, "" for a host without one.
func (h Host) Link(name string, e Entry) string {
	if h.link == nil {
		return ""
	}
	return h.link(name, e)
}

// cursorLink is Cursor's form (source: docs/mcp.md, "The hosts' files").
func cursorLink(name string, e Entry) string {
	config := base64.StdEncoding.EncodeToString(object(e.members(nil)))
	return "cursor://anysphere.cursor-deeplink/mcp/install?name=" + component(name) + "&config=" + component(config)
}

// codeLink is VS Code's form.
func codeLink(name string, e Entry) string {
	return "vscode:mcp/install?" + component(string(object(e.members([]member{{"name", name}}))))
}

// component escapes a part of an address as JavaScript's encodeURIComponent does, as far as readers can tell.
func component(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// tables is an entry as TOML, with the members that somebody else has added.
func tables(key, name string, e Entry, more map[string]any) []byte {
	var server any = struct {
		Command string            `toml:"command"`
		Args    []string          `toml:"args,omitempty"`
		Env     map[string]string `toml:"env,omitempty"`
	}{e.Command, e.Args, e.Env}
	if len(more) > 0 {
		all := maps.Clone(more)
		for _, m := range e.members(nil) {
			all[m.name] = m.value
		}
		server = all
	}
	var out bytes.Buffer
	// Encode fails on values that TOML cannot have, which none is: they are texts, or come from TOML.
	if err := toml.NewEncoder(&out).Encode(map[string]any{key: map[string]any{name: server}}); err != nil {
		return nil
	}
	// The encoder begins with the line of the outer table, which may be in the file already.
	text := strings.TrimPrefix(out.String(), "["+key+"]\n")
	return []byte(strings.TrimLeft(text, "\n"))
}
