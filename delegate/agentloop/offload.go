package agentloop

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// previews reports whether an agent of this configuration may be shown previews of its results.
func (c *Config) previews() bool {
	if c.Results.OffloadBytes > 0 {
		return true
	}
	for i := range c.Models {
		if c.Models[i].ContextTokens > 0 {
			return true
		}
	}
	return false
}

// shown is a result as the model sees it: a JSON object, so that foreign text is marked as data and cannot end its quotes. brief is the
// same result as a preview, "" if that would not be shorter.
func (a *agent) shown(c *call) (text, brief string) {
	if c.out.code != "" {
		var o jsonvalue.Ordered
		o.Put("error", map[string]any{"code": c.out.code, "message": c.out.message})
		return c.with(o), ""
	}
	if c.out.preview != "" {
		var o jsonvalue.Ordered
		preview := c.out.preview
		if a.fetches {
			preview += " " + fetchHint(c.key)
		}
		o.Put("data_preview", preview)
		return c.with(o), ""
	}
	// The text of a result is built once: it is most of the work of a turn.
	t := &a.talk
	begin := append(t.scratch[:0], dataBegins...)
	all := jsonvalue.Append(begin, c.out.output)
	data := all[len(dataBegins):]
	defer func() { t.scratch = keep(all[:0]) }()
	var short jsonvalue.Ordered
	if c.tool != nil && c.tool.Source == sourceResults { // it is as long as fetch_result lets it be, and what it is of has a ref already
		short.Put("data_preview", "["+fetchResult+"] Taken out to save room. Make the same call again to read it.")
	} else {
		if len(data) > leastPreview {
			short.Put("data_preview", a.preview(c, data))
		}
		if most := a.cfg.Results.OffloadBytes; most > 0 && len(data) > most && a.fetches {
			if short == nil {
				short.Put("data_preview", a.preview(c, data))
			}
			return c.with(short), ""
		}
	}
	if most := a.cfg.Results.MaxChars; len(data) > most && (c.tool == nil || c.tool.Source != sourceResults) {
		if begin := firstUnits(data, most); len(begin) < len(data) {
			text = c.with(a.beginning(c, begin, len(data)))
		}
	}
	if text == "" {
		all = append(c.appendWith(all), '}')
		text = string(all)
	}
	if short != nil {
		brief = c.with(short)
	}
	if len(brief) >= len(text) {
		brief = ""
	}
	return text, brief
}

const dataBegins = `{"data":`

// leastPreview is the size below which a result is never shorter as a preview.
const leastPreview = 100

// firstUnits is jsonvalue.FirstUnits for long texts: the result does not keep the rest in memory.
func firstUnits(text []byte, n int) string {
	return jsonvalue.FirstUnits(string(text[:min(len(text), 4*n+4)]), n)
}

// beginning is the part of a long result that the model sees.
func (a *agent) beginning(c *call, begin string, bytes int) (o jsonvalue.Ordered) {
	o.Put("data_beginning", begin)
	o.Number("data_bytes", int64(bytes))
	if a.fetches {
		o.Text("data_rest", fetchHint(c.key))
	}
	return o
}

// with adds further fields about a result to an object.
func (c *call) with(o jsonvalue.Ordered) string {
	text := o.Append(nil)
	return string(append(c.appendWith(text[:len(text)-1]), '}'))
}

// appendWith appends that to an object that is not closed yet.
func (c *call) appendWith(to []byte) []byte {
	var o jsonvalue.Ordered
	if c.out.by == byPerson {
		o.Text("by", "person")
	}
	if c.edited {
		o.Put("arguments_changed_by_a_person", c.args)
	}
	o.Text("note", c.note)
	if o == nil {
		return to
	}
	text := o.Append(nil)
	return append(append(to, ','), text[1:len(text)-1]...)
}

// preview describes a result: its type, its size, its beginning, and how to read the rest.
func (a *agent) preview(c *call, data []byte) string {
	most := a.cfg.Results.PreviewChars
	clip := func(text []byte) string {
		short := firstUnits(text, most)
		if len(short) < len(text) {
			short += "…"
		}
		return short
	}
	text := "[" + c.name + "] "
	switch v := c.out.output.(type) {
	case []any:
		text += fmt.Sprintf("list of %s, %s.", counted(len(v), "item"), sizeText(len(data)))
		if len(v) > 0 {
			text += " First item: " + clip(jsonvalue.Canonical(v[0]))
		}
	case map[string]any:
		text += fmt.Sprintf("object of %s, %s. It begins: %s", counted(len(v), "member"), sizeText(len(data)), clip(data))
	case string:
		text += fmt.Sprintf("text, %s. It begins: %s", sizeText(len(data)), clip([]byte(v[:min(len(v), 4*most+4)])))
	default:
		text += clip(data)
	}
	if a.fetches {
		text += " " + fetchHint(c.key)
	}
	return text
}

func fetchHint(ref string) string {
	return fmt.Sprintf("Use %s with ref %q for the rest.", fetchResult, ref)
}

func counted(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return itoa(n) + " " + of + "s"
}

func sizeText(bytes int) string {
	switch {
	case bytes < 1000:
		return itoa(bytes) + " B"
	case bytes < 999_950: // so that it is not 1000.0 KB
		return fmt.Sprintf("%.1f KB", float64(bytes)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}
