package admit

import (
	"github.com/workflows-engine/workflows-engine/history"
	"strconv"
	"strings"
)

// attemptKey is a parsed key or id of an attempt, interrupt or wait.
type attemptKey struct {
	// executionID is the run or the subworkflow below it.
	executionID, nodeID string
	// attempt is 0 for ids without one.
	visit, attempt int
}

// parseKey parses a key or id of a run or a subworkflow below it. node is the node's name, if known; it may contain the characters that
// separate the parts.
func parseKey(executionID, key, node string) (k attemptKey, ok bool) {
	hash := strings.LastIndexByte(key, '#')
	if hash < 0 {
		return k, false
	}
	colon := len(executionID)
	switch below := strings.HasPrefix(key, executionID+history.ChildMark); {
	case node != "":
		colon = strings.LastIndex(key, ":"+node+"#")
	case below:
		colon = strings.LastIndexByte(key[:hash], ':')
	}
	if colon < 0 || colon >= hash || !strings.HasPrefix(key, executionID+":") || colon > len(executionID) && !strings.HasPrefix(key, executionID+history.ChildMark) {
		return k, false
	}
	number, rest, _ := strings.Cut(key[hash+1:], ".")
	visit, err := strconv.Atoi(number)
	attempt := 0
	if rest != "" && err == nil {
		attempt, err = strconv.Atoi(rest)
	}
	return attemptKey{key[:colon], key[colon+1 : hash], visit, attempt}, err == nil && visit > 0
}
