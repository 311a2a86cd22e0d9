package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// caughtCodes warns of codes in catch and retry that no failure of the engine has, and that are like one that some have.
func (l *linter) caughtCodes() {
	for _, n := range l.program.Nodes {
		written := l.document(n)
		catches, _ := written["catch"].([]any)
		for i, catch := range catches {
			catch, _ := catch.(map[string]any)
			l.codes(catch["codes"], nodePointer(n)+"/catch/"+strconv.Itoa(i)+"/codes", n)
		}
		retry, _ := written["retry"].(map[string]any)
		l.codes(retry["non_retryable_errors"], nodePointer(n)+"/retry/non_retryable_errors", n)
	}
}

func (l *linter) codes(list any, pointer string, n *definition.Node) {
	codes, _ := list.([]any)
	for i, code := range codes {
		code, _ := code.(string)
		if !l.compared.take(len(problem.Failures)) {
			return
		}
		if near := nearCode(code); near != "" {
			l.warn(problem.FieldIgnored, pointer+"/"+strconv.Itoa(i), n, fmt.Sprintf("the engine has no failure with the code %q", clip(code)), suggest.Hint(near))
		}
	}
}

// nearCode returns the code, or the pattern of codes, that was probably meant by one that no known code matches, "" if it may well be
// that of an executor or a host.
func nearCode(code string) string {
	pattern := &definition.Node{Catches: []definition.Catch{{Codes: []string{code}}}}
	if slices.ContainsFunc(problem.Failures, func(known problem.Code) bool { return pattern.CaughtBy(string(known)) != nil }) {
		return ""
	}
	stem, begins := strings.CutSuffix(code, "*")
	if len(code) > maxCode || strings.Contains(stem, "*") {
		return ""
	}
	stem, whole := strings.CutSuffix(stem, "_")
	if !begins && family(stem) {
		return stem + "_*"
	}
	words := strings.Split(stem, "_")
	for _, known := range problem.Failures {
		others := strings.Split(string(known), "_")
		switch {
		case begins && len(others) > len(words) && sameButTypo(words, others[:len(words)]):
			near := strings.Join(others[:len(words)], "_")
			if whole {
				near += "_"
			}
			return near + "*"
		case !begins && !whole && sameButTypo(words, others), len(others) > 1 && strings.ReplaceAll(code, "_", "") == strings.Join(others, ""):
			return string(known)
		}
	}
	return ""
}

// family reports whether a code is the prefix of several known ones: LLM of LLM_PROVIDER_ERROR and others.
func family(stem string) bool {
	members := 0
	for _, known := range problem.Failures {
		if strings.HasPrefix(string(known), stem+"_") {
			members++
		}
	}
	return members > 2
}

// maxCode bounds the codes that are compared with others.
const maxCode = 64

// sameButTypo reports whether words are the others but for a typing error in one of them.
func sameButTypo(words, others []string) bool {
	typos := 0
	for i := range min(len(words), len(others)) {
		if words[i] != others[i] {
			if typos++; typos > 1 || !typo(words[i], others[i]) {
				return false
			}
		}
	}
	return len(words) == len(others) && typos == 1
}

// typo reports whether a word is another one with letters swapped, doubled or left out, and not likely to be a word of its own: TCP is
// not a misspelt MCP, nor is MPC, or STORED a misspelt STORE.
func typo(word, other string) bool {
	if len(word) < 3 || word == other+"S" || suggest.Nearest(word, []string{other}) == "" {
		return false
	}
	a, b := []byte(word), []byte(other)
	slices.Sort(a)
	slices.Sort(b)
	if slices.Equal(a, b) {
		return len(word) > 3
	}
	if slices.Equal(slices.Compact(a), slices.Compact(b)) {
		return true
	}
	short, long := word, other
	if len(short) > len(long) {
		short, long = long, short
	}
	if len(short) < 5 || len(long) != len(short)+1 || short[0] != long[0] || strings.HasPrefix(long, short) {
		return false
	}
	for i := range short {
		if short[i] != long[i] {
			return short[i:] == long[i+1:]
		}
	}
	return false
}
