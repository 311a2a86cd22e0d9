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

// shown is what the model is shown of a result: a JSON object, which marks as data what comes from outside; a quote in it ends nothing. brief
// is the same result as a preview, "" if that would not be shorter.
func (a *agent) shown(c *call) (text, brief string) {
	if c.out.code != "" {
		var o jsonvalue.Ordered
		o.Put("error", map[string]any{"code": c.out.code, "message": c.out.message})
		return c.with(o), ""
	}
	data := string(jsonvalue.Canonical(c.out.output))
	var o, short jsonvalue.Ordered
	if c.tool != nil && c.tool.Source == sourceResults { // it is as long as fetch_result lets it be, and what it is of has a ref already
		o.Put("data", jsonvalue.Raw(data))
		short.Put("data_preview", "["+fetchResult+"] Taken out to save room. Make the same call again to read it.")
	} else {
		short.Put("data_preview", a.preview(c, data))
		if most := a.cfg.Results.OffloadBytes; most > 0 && len(data) > most && a.fetches {
			return c.with(short), ""
		}
		a.cut(&o, c, data)
	}
	text, brief = c.with(o), c.with(short)
	if len(brief) >= len(text) {
		brief = ""
	}
	return text, brief
}

// cut puts a result, or as much of it as is shown at once.
func (a *agent) cut(o *jsonvalue.Ordered, c *call, data string) {
	most := a.cfg.Results.MaxChars
	if len(data) > most {
		if begin := jsonvalue.FirstUnits(data, most); len(begin) < len(data) {
			o.Put("data_beginning", begin)
			o.Number("data_bytes", int64(len(data)))
			if a.fetches {
				o.Text("data_rest", fetchHint(c.key))
			}
			return
		}
	}
	o.Put("data", jsonvalue.Raw(data))
}

// with adds to what is shown of a result what there is to say besides.
func (c *call) with(o jsonvalue.Ordered) string {
	if c.out.by == byPerson {
		o.Text("by", "person")
	}
	if c.edited {
		o.Put("arguments_changed_by_a_person", c.args)
	}
	o.Text("note", c.note)
	return string(o.Append(nil))
}

// preview says what a result is, how large it is, how it begins, and how the rest is read.
func (a *agent) preview(c *call, data string) string {
	most := a.cfg.Results.PreviewChars
	clip := func(text string) string {
		if short := jsonvalue.FirstUnits(text, most); len(short) < len(text) {
			return short + "…"
		}
		return text
	}
	text := "[" + c.name + "] "
	switch v := c.out.output.(type) {
	case []any:
		text += fmt.Sprintf("list of %s, %s.", counted(len(v), "item"), sizeText(len(data)))
		if len(v) > 0 {
			text += " First item: " + clip(string(jsonvalue.Canonical(v[0])))
		}
	case map[string]any:
		text += fmt.Sprintf("object of %s, %s. It begins: %s", counted(len(v), "member"), sizeText(len(data)), clip(data))
	case string:
		text += fmt.Sprintf("text, %s. It begins: %s", sizeText(len(data)), clip(v))
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
	case bytes < 1_000_000:
		return fmt.Sprintf("%.1f KB", float64(bytes)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}
