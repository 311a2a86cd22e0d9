package mcphost

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// mark is the byte order mark that some editors on Windows put first.
var mark = []byte("\xef\xbb\xbf")

// Entries returns the servers that a file's text names.
func (h Host) Entries(path string, text []byte) (map[string]Entry, error) {
	values, err := h.parse(path, text)
	if err != nil {
		return nil, err
	}
	entries := map[string]Entry{}
	servers, _ := values[h.key].(map[string]any)
	for name, value := range servers {
		entries[name] = h.entryOf(value)
	}
	return entries, nil
}

// parse reads a text as plain values. Its error names the place.
func (h Host) parse(path string, text []byte) (map[string]any, error) {
	text = bytes.TrimPrefix(text, mark)
	var value any = map[string]any{}
	var err error
	if h.toml {
		values := map[string]any{}
		value, err = values, toml.Unmarshal(text, &values)
	} else if len(bytes.TrimSpace(text)) > 0 {
		var d *jsonText
		if d, err = parseJSON(text); err == nil {
			value, err = d.plain()
		}
	}
	if err != nil {
		return nil, h.invalid(path, err)
	}
	values, ok := value.(map[string]any)
	if !ok {
		return nil, h.invalid(path, errors.New("expected an object"))
	}
	if servers, there := values[h.key]; there {
		if _, ok := servers.(map[string]any); !ok {
			return nil, h.invalid(path, fmt.Errorf("%s: expected an object", h.key))
		}
	}
	return values, nil
}

// invalid is the error of a file that cannot be parsed.
func (h Host) invalid(path string, err error) error {
	what := "JSON"
	if h.toml {
		what = "TOML"
	}
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := at.Position()
		err = fmt.Errorf("line %d, column %d: %w", line, column, err)
	}
	return problem.New(problem.HostFileInvalid, "%s is not the %s that %s reads: %s", path, what, h.Title, strings.TrimPrefix(err.Error(), "hujson: ")).
		WithHint("Correct the file in an editor, then try again. It was not changed.")
}

// Doubts describes the parts of a valid text that the host may not read, "" without any.
func (h Host) Doubts(text []byte) string {
	if h.toml || h.lenient || len(bytes.TrimSpace(text)) == 0 {
		return ""
	}
	root, err := hujson.Parse(bytes.TrimPrefix(text, mark))
	if err != nil || root.IsStandard() {
		return ""
	}
	return fmt.Sprintf("comments or trailing commas found, which %s may not read", h.Title)
}

// Edited reports whether Add and Remove can edit the file of the host: those edit JSON. For other files see AddByHand.
func (h Host) Edited() bool { return !h.toml }

// Add returns the text with the server in it. A text that has it already is returned as it is; see Entry.merged for one that
// has it with other fields.
func (h Host) Add(path string, text []byte, name string, e Entry) ([]byte, error) {
	e, before, err := h.planned(path, text, name, e)
	if err != nil {
		return nil, err
	}
	body := bytes.TrimPrefix(text, mark)
	lead := text[:len(text)-len(body)]
	after, err := h.addJSON(body, name, e, before != nil && (e.URL == "") == (before.URL == ""))
	if err != nil || bytes.Equal(after, body) {
		return text, err
	}
	after = append(bytes.Clone(lead), after...)
	return after, h.verify(path, text, after, name)
}

// planned returns the entry to write, merged with the one in the text; before is that one, nil without one.
func (h Host) planned(path string, text []byte, name string, e Entry) (planned Entry, before *Entry, err error) {
	if err := h.Accepts(e); err != nil {
		return e, nil, err
	}
	values, err := h.parse(path, text)
	if err != nil {
		return e, nil, err
	}
	servers, _ := values[h.key].(map[string]any)
	there, exists := servers[name]
	if !exists {
		return e, nil, nil
	}
	object, ok := there.(map[string]any)
	if !ok {
		return e, nil, h.invalid(path, fmt.Errorf("%s.%s: expected an object", h.key, name))
	}
	entry := h.entryOf(object)
	if (e.URL == "") == (entry.URL == "") { // otherwise no field fits the new entry
		e = e.merged(entry)
	}
	return e, &entry, nil
}

// AddByHand describes the change that puts the server into a file that is not edited: an instruction and the text to paste; both are
// empty if the file has the server already.
func (h Host) AddByHand(path string, text []byte, name string, e Entry) (instruction, paste string, err error) {
	e, before, err := h.planned(path, text, name, e)
	switch {
	case err != nil:
		return "", "", err
	case before == nil:
		return fmt.Sprintf("add this to %s", path), h.Print(name, e), nil
	case reflect.DeepEqual(normal(*before), normal(e)):
		return "", "", nil
	}
	return fmt.Sprintf("in %s, replace %s.%s with this, and keep your own settings of it", path, h.key, name), h.Print(name, e), nil
}

// RemoveByHand describes the change that removes the server from a file that is not edited; "" if the file does not have it.
func (h Host) RemoveByHand(path string, text []byte, name string) (instruction string, err error) {
	entries, err := h.Entries(path, text)
	if err != nil || !has(entries, name) {
		return "", err
	}
	return fmt.Sprintf("in %s, delete the table %s.%s and the tables below it", path, h.key, name), nil
}

// addJSON writes an entry; keep keeps the other fields of an existing one.
func (h Host) addJSON(body []byte, name string, e Entry, keep bool) ([]byte, error) {
	d, err := parseJSON(body)
	if err != nil {
		return nil, err
	}
	if !keep {
		d.set([]string{h.key, name}, h.members(e, h.first))
		return d.bytes(), nil
	}
	for _, m := range h.members(e, nil) {
		if headers, ok := m.value.([]member); ok {
			d.set([]string{h.key, name, m.name, headers[0].name}, headers[0].value) // other headers stay
			continue
		}
		d.set([]string{h.key, name, m.name}, m.value)
	}
	return d.bytes(), nil
}

// normal returns an entry with nil for empty lists.
func normal(e Entry) Entry {
	if len(e.Args) == 0 {
		e.Args = nil
	}
	if len(e.Env) == 0 {
		e.Env = nil
	}
	return e
}

// Remove returns the text without the server, and whether it had it.
func (h Host) Remove(path string, text []byte, name string) ([]byte, bool, error) {
	values, err := h.parse(path, text)
	if err != nil {
		return nil, false, err
	}
	servers, _ := values[h.key].(map[string]any)
	if _, exists := servers[name]; !exists {
		return text, false, nil
	}
	body := bytes.TrimPrefix(text, mark)
	after := bytes.Clone(text[:len(text)-len(body)])
	d, err := parseJSON(body)
	if err != nil {
		return nil, true, err
	}
	for d.remove([]string{h.key, name}) { // the name may be duplicate
	}
	after = append(after, d.bytes()...)
	return after, true, h.verify(path, text, after, name)
}

// verify checks that an edit changed nothing but the server: the last line of defence of a file that is not ours.
func (h Host) verify(path string, before, after []byte, name string) error {
	a, errA := h.others(path, before, name)
	b, errB := h.others(path, after, name)
	if err := errors.Join(errA, errB); err != nil || !reflect.DeepEqual(a, b) {
		return problem.New(problem.Internal, "cannot edit %s without a change of other settings in it (%v)", path, err).
			WithHint("Paste the entry that --print prints. The file was not changed.")
	}
	return nil
}

// others returns the values of a text without the server, and without the object of servers if it is empty otherwise.
func (h Host) others(path string, text []byte, name string) (map[string]any, error) {
	values, err := h.parse(path, text)
	if err != nil {
		return nil, err
	}
	if servers, ok := values[h.key].(map[string]any); ok {
		rest := maps.Clone(servers)
		delete(rest, name)
		values[h.key] = rest
		if len(rest) == 0 {
			delete(values, h.key)
		}
	}
	return values, nil
}

// Undone returns the text from before the server was added, if it can be known: adding the server to one of the earlier texts, or
// to no file, makes exactly this text. Otherwise it returns the text without the server.
func (h Host) Undone(path string, text []byte, name string, earlier [][]byte) (before []byte, had bool, err error) {
	before, had, err = h.Remove(path, text, name)
	if err != nil || !had {
		return before, had, err
	}
	entries, err := h.Entries(path, text)
	if err != nil {
		return nil, true, err
	}
	for _, candidate := range append(slices.Clone(earlier), nil) {
		if named, err := h.Entries(path, candidate); err != nil || has(named, name) {
			continue
		}
		if again, err := h.Add(path, candidate, name, entries[name]); err == nil && bytes.Equal(again, text) {
			return candidate, true, nil
		}
	}
	before, err = h.tidied(path, before, earlier)
	return before, true, err
}

// tidied returns a text without an empty object of servers, unless the object existed before any server was added.
func (h Host) tidied(path string, text []byte, earlier [][]byte) ([]byte, error) {
	for _, candidate := range earlier { // the newest first
		if values, err := h.parse(path, candidate); err == nil {
			if servers, there := values[h.key].(map[string]any); len(servers) == 0 && there {
				return text, nil
			} else if !there {
				break
			}
		}
	}
	body := bytes.TrimPrefix(text, mark)
	d, err := parseJSON(body)
	if err != nil || !d.removeEmpty(h.key) {
		return text, err
	}
	after := append(bytes.Clone(text[:len(text)-len(body)]), d.bytes()...)
	return after, h.verify(path, text, after, "")
}

func has(entries map[string]Entry, name string) bool {
	_, ok := entries[name]
	return ok
}
