package cli

import (
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// parsePayload reads what a person typed: a JSON object, or words of the form key=value. A value is read as the type
// that the schema gives the key, a boolean from yes and no too; without one, as JSON if it is JSON, else as text. A lone yes or no answers the
// boolean that is asked for.
func parsePayload(line string, schema map[string]any) (map[string]any, error) {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "{") {
		node, faults := jsonvalue.Parse([]byte(line), 0, 0)
		if len(faults) > 0 {
			return nil, faults[0]
		}
		object, _ := node.Value().(map[string]any)
		return object, nil
	}
	words, err := splitWords(line)
	if err != nil {
		return nil, err
	}
	payload := map[string]any{}
	for _, word := range words {
		key, text, ok := strings.Cut(word, "=")
		if name := onlyBoolean(schema); !ok && len(words) == 1 && name != "" {
			if yes, understood := yesOrNo(word); understood {
				return map[string]any{name: yes}, nil
			}
		}
		if !ok || key == "" {
			return nil, fmt.Errorf("%q is neither JSON nor key=value", word)
		}
		payload[key] = typed(text, propertySchema(schema, key))
	}
	return payload, nil
}

// typed reads the text of one value.
func typed(text string, schema map[string]any) any {
	if schema["type"] == "string" {
		return text
	}
	if schema["type"] == "boolean" {
		if yes, understood := yesOrNo(text); understood {
			return yes
		}
	}
	node, faults := jsonvalue.Parse([]byte(text), 0, 0)
	if len(faults) > 0 {
		return text
	}
	value := node.Value()
	// A list of allowed values settles whether 7 is a number or a text.
	if allowed, ok := schema["enum"].([]any); ok && !contains(allowed, value) && contains(allowed, text) {
		return text
	}
	return value
}

// yesOrNo reads a word that stands for a boolean.
func yesOrNo(word string) (yes, understood bool) {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "yes", "y", "true":
		return true, true
	case "no", "n", "false":
		return false, true
	}
	return false, false
}

// onlyBoolean is the member that a lone yes or no answers: the one that is required, or the one that there is, if it is a boolean.
func onlyBoolean(schema map[string]any) string {
	names := requiredNames(schema)
	if len(names) == 0 {
		properties, _ := schema["properties"].(map[string]any)
		names = jsonvalue.Keys(properties)
	}
	if len(names) == 1 && propertySchema(schema, names[0])["type"] == "boolean" {
		return names[0]
	}
	return ""
}

func contains(list []any, v any) bool {
	for _, e := range list {
		if jsonvalue.Equal(e, v) {
			return true
		}
	}
	return false
}

// splitWords splits at blanks outside quotes. Quotes, single or double, may stand anywhere in a word: a="two words".
func splitWords(line string) ([]string, error) {
	var (
		words []string
		word  strings.Builder
		open  bool // a word has begun
		quote rune
	)
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, open = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			if open {
				words = append(words, word.String())
				word.Reset()
				open = false
			}
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("the quote %c is not closed", quote)
	}
	if open {
		words = append(words, word.String())
	}
	return words, nil
}
