package chat

import "strings"

// invisible holds the invisible characters that models put around an answer: byte order marks and zero-width spaces.
const invisible = "\ufeff\u200b\u200c\u200d\u2060"

// blanks holds the white space and invisible characters around JSON.
const blanks = invisible + " \t\r\n\u00a0"

// maxCandidates limits the parts of an answer that are read as JSON.
const maxCandidates = 20

// ReadJSON reads the JSON in an answer of a model: the whole answer, else a code block of JSON, else another code block, else text in
// brackets between words. Reasoning at the beginning (<think>…</think>) is skipped. read returns the value of a part, or the error in it,
// and whether the part is JSON. Several valid parts of the same rank are ambiguous, unless they are equal.
func ReadJSON[T any](text string, read func(part string) (v T, wrong string, isJSON bool), same func(a, b T) bool) (v T, wrong string) {
	text = strings.Trim(text, blanks)
	if _, said, ok := Thought(text); ok {
		text = strings.Trim(said, blanks)
	}
	v, wrong, isJSON := read(text)
	if wrong == "" || isJSON {
		return v, wrong
	}
	all := wrong
	for _, parts := range partsOf(text) {
		var found []T
		for _, part := range parts {
			candidate, why, json := read(part)
			switch {
			case why == "":
				found = append(found, candidate)
			case json && !isJSON: // an error in JSON is more useful than "not JSON"
				v, wrong, isJSON = candidate, why, true
			}
		}
		for _, other := range found[min(1, len(found)):] {
			if !same(found[0], other) {
				var none T
				return none, all + "; it has several values that could be meant"
			}
		}
		if len(found) > 0 {
			return found[0], ""
		}
	}
	return v, wrong
}

// partsOf returns the parts of a text that may be JSON: code blocks of JSON, without a language, of other languages, and text in brackets.
func partsOf(text string) [4][]string {
	var parts [4][]string
	n := 0
	add := func(kind int, part string) {
		if part = strings.Trim(part, blanks); part != "" && n < maxCandidates {
			parts[kind] = append(parts[kind], part)
			n++
		}
	}
	for rest, fenced := text, false; ; fenced = !fenced {
		part, behind, more := strings.Cut(rest, "```")
		if fenced && more {
			language, block, lines := strings.Cut(part, "\n") // the first line may name the language
			switch language = strings.ToLower(strings.TrimSpace(language)); {
			case !lines:
			case language == "json":
				add(0, block)
			case language == "":
				add(1, block)
			default:
				add(2, block)
			}
		}
		if rest = behind; !more {
			break
		}
	}
	for at, starts := 0, 0; starts < maxCandidates; starts++ {
		next := strings.IndexAny(text[at:], "{[")
		if next < 0 {
			break
		}
		at += next
		if end := closing(text[at:]); end > 0 {
			add(3, text[at:at+end])
			at += end
		} else { // the JSON may begin after this bracket
			at++
		}
	}
	return parts
}

// closing returns the length of the object or array at the beginning of a text, by its brackets and strings; 0 if it does not end.
func closing(text string) int {
	depth, inside := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case inside:
		case c == '{', c == '[':
			depth++
		case c == '}', c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// The tags around a model's reasoning.
const (
	ThinkBegin = "<think>"
	ThinkEnd   = "</think>"
)

// Thought splits an answer that starts with the model's reasoning; ok is false for other answers.
func Thought(text string) (thought, said string, ok bool) {
	inner, begins := strings.CutPrefix(strings.TrimLeft(text, blanks), ThinkBegin)
	if !begins {
		return "", text, false
	}
	thought, said, ok = strings.Cut(inner, ThinkEnd)
	if !ok {
		return "", text, false
	}
	return strings.TrimSpace(thought), strings.TrimLeft(said, blanks), true
}
