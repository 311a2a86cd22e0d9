package mcphost

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Entry is how a host starts a server, or the server's address.
type Entry struct {
	Command string
	Args    []string
	Env     map[string]string
	// URL is the address; then the fields above are empty. TokenEnv names the host's variable with the bearer token, "" for
	// no token: the token itself is never written.
	URL, TokenEnv string
}

// Program is the name of the engine's MCP server.
const Program = "workflows-engine-mcp"

// Starts reports whether an entry starts the engine's server, itself or by a program such as npx.
func (e Entry) Starts() bool {
	_, _, starts := e.split()
	return starts
}

// split divides the arguments into the arguments of a launcher such as npx, up to the server's name, and the server's own flags.
func (e Entry) split() (launcher, flags []string, starts bool) {
	for i, word := range append([]string{e.Command}, e.Args...) {
		if at := strings.LastIndexAny(word, `/\`); strings.TrimSuffix(word[at+1:], ".exe") == Program {
			return e.Args[:i], e.Args[i:], true
		}
	}
	return nil, e.Args, false
}

// NPX returns how a host starts the server of the npm package, with its flags.
func NPX(goos string, flags []string) Entry {
	words := []string{"npx", "-y", Program}
	if goos == "windows" {
		words = append([]string{"cmd", "/c"}, words...) // npx is a script there, which hosts cannot start
	}
	return Entry{Command: words[0], Args: append(words[1:], flags...)}
}

// member is a field of an object whose order is kept.
type member struct {
	name  string
	value any
}

// remote describes how a host writes the address of a server.
type remote struct {
	// first holds the first fields of an entry, address names the field with the address.
	first   []member
	address string
	// variable is how a header refers to a variable, with %s for its name; "" if the host has no such way.
	variable string
}

const authorization = "Authorization"

// members returns the fields of an entry in the order of the file; first is only for entries that start the server.
func (h Host) members(e Entry, first []member) []member {
	if e.URL != "" {
		list := append(slices.Clone(h.remote.first), member{h.remote.address, e.URL})
		if e.TokenEnv != "" {
			list = append(list, member{"headers", []member{{authorization, h.bearer(e.TokenEnv)}}})
		}
		return list
	}
	list := slices.Clone(first)
	if h.joined {
		list = append(list, member{"command", append([]string{e.Command}, e.Args...)})
		if len(e.Env) > 0 {
			list = append(list, member{"environment", e.Env})
		}
		return list
	}
	list = append(list, member{"command", e.Command})
	if len(e.Args) > 0 {
		list = append(list, member{"args", e.Args})
	}
	if len(e.Env) > 0 {
		list = append(list, member{"env", e.Env})
	}
	return list
}

// bearer is the header that refers to a variable.
func (h Host) bearer(variable string) string {
	return "Bearer " + strings.ReplaceAll(h.remote.variable, "%s", variable)
}

// Accepts returns why the host's file cannot hold the entry, nil if it can.
func (h Host) Accepts(e Entry) error {
	switch {
	case e.URL == "":
		return nil
	case h.remote.address == "":
		return problem.New(problem.UsageError, "%s does not support servers with an address", h.Title).WithHint("Leave out --url: %s starts the server itself.", h.Title)
	case e.TokenEnv != "" && h.remote.variable == "" && !h.toml:
		return problem.New(problem.UsageError, "headers in the file of %s cannot refer to variables", h.Title).
			WithHint("Leave out --token-env, then add the header with the token in an editor.")
	}
	return nil
}

// merged is an existing entry with the command or the address of e; its flags are replaced only if e has any, and its other variables
// are kept.
func (e Entry) merged(there Entry) Entry {
	if e.URL != "" {
		e.TokenEnv = cmp.Or(e.TokenEnv, there.TokenEnv)
		return e
	}
	launcher, flags, _ := e.split()
	if len(flags) == 0 {
		_, flags, _ = there.split()
	}
	e.Args = slices.Concat(launcher, flags)
	env := maps.Clone(there.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, e.Env)
	e.Env = env
	return e
}

// entryOf reads an entry from a server in a file; fields of another type are left out.
func (h Host) entryOf(value any) (e Entry) {
	object, _ := value.(map[string]any)
	e.Command, _ = object["command"].(string)
	args, _ := object["args"].([]any)
	env, _ := object["env"].(map[string]any)
	if h.joined {
		args, _ = object["command"].([]any)
		if len(args) > 0 {
			e.Command, _ = args[0].(string)
			args = args[1:]
		}
		env, _ = object["environment"].(map[string]any)
	}
	for _, a := range args {
		if text, ok := a.(string); ok {
			e.Args = append(e.Args, text)
		}
	}
	for name, v := range env {
		if text, ok := v.(string); ok {
			if e.Env == nil {
				e.Env = map[string]string{}
			}
			e.Env[name] = text
		}
	}
	if h.remote.address == "" || e.Command != "" {
		return e
	}
	e.URL, _ = object[h.remote.address].(string)
	if h.toml {
		e.TokenEnv, _ = object["bearer_token_env_var"].(string)
		return e
	}
	headers, _ := object["headers"].(map[string]any)
	bearer, _ := headers[authorization].(string)
	before, after, _ := strings.Cut(h.bearer("%s"), "%s")
	if name, ok := strings.CutPrefix(bearer, before); ok && strings.HasSuffix(name, after) && h.remote.variable != "" {
		e.TokenEnv = strings.TrimSuffix(name, after)
	}
	return e
}

// object returns the JSON object of members, compact.
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

// compact returns a value as JSON.
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

// Print returns the text to paste into the host's file.
func (h Host) Print(name string, e Entry) string {
	if h.toml {
		return h.tables(name, e)
	}
	var out bytes.Buffer
	// Indent fails on invalid JSON only.
	_ = json.Indent(&out, object([]member{{h.key, []member{{name, h.members(e, h.first)}}}}), "", "  ")
	return out.String() + "\n"
}

// Link returns the address that installs the server when it is opened, "" for a host without one.
func (h Host) Link(name string, e Entry) string {
	if h.link == nil {
		return ""
	}
	return h.link(name, h.members(e, nil))
}

// cursorLink is Cursor's form (source: docs/install.md, "The hosts' files").
func cursorLink(name string, members []member) string {
	config := base64.StdEncoding.EncodeToString(object(members))
	return "cursor://anysphere.cursor-deeplink/mcp/install?name=" + component(name) + "&config=" + component(config)
}

// codeLink is VS Code's form.
func codeLink(name string, members []member) string {
	return "vscode:mcp/install?" + component(string(object(append([]member{{"name", name}}, members...))))
}

// component escapes a part of an address as JavaScript's encodeURIComponent does, as far as readers can tell.
func component(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// tables returns an entry as TOML.
func (h Host) tables(name string, e Entry) string {
	text, err := toml.Marshal(map[string]any{h.key: map[string]any{name: struct {
		Command  string            `toml:"command,omitempty"`
		Args     []string          `toml:"args,omitempty"`
		Env      map[string]string `toml:"env,omitempty"`
		URL      string            `toml:"url,omitempty"`
		TokenEnv string            `toml:"bearer_token_env_var,omitempty"`
	}{e.Command, e.Args, e.Env, e.URL, e.TokenEnv}}})
	if err != nil {
		return "" // never: values are texts, lists and maps of texts
	}
	// The encoder starts with the line of the outer table, which may be in the file already.
	return strings.TrimPrefix(string(text), "["+h.key+"]\n")
}
