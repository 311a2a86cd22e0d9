package agentloop

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// StepPiece is a piece of a large result: the steps right before that result hold it, and each has its key.
const StepPiece = agentsteps.Piece

// DefaultMaxBytes is how much of a result is kept.
const DefaultMaxBytes = 64 << 20

const (
	// leastLarge is the size above which a result is kept in pieces.
	leastLarge = 1 << 20
	pieceBytes = 1 << 20
	// maxPieceText is how large a piece may be as a JSON string, so that its step fits.
	maxPieceText = 2<<20 - 256<<10
	// maxBegins is how much of a result a preview can show.
	maxBegins = 400_000
	// maxJQBytes is how large a result may be to be read by jq.
	maxJQBytes = 8 << 20
)

// The types of large results.
const (
	typeText   = "text"
	typeList   = "list"
	typeObject = "object"
)

// Large describes, in a journal entry, an output that is stored in pieces.
type Large struct {
	Hash string `json:"hash"`
	Type string `json:"type"`
	// Bytes and Chars are the size of the output: of a string itself, of another value as canonical JSON.
	Bytes int `json:"bytes"`
	Chars int `json:"chars"`
	// Items counts the items of a list, and the fields of an object.
	Items int `json:"items,omitempty"`
	// Truncated is set if only the beginning of WholeBytes was kept, as a text.
	Truncated  bool    `json:"truncated,omitempty"`
	WholeBytes int     `json:"wholeBytes,omitempty"`
	Preview    string  `json:"preview"`
	Pieces     []Piece `json:"pieces"`

	begins string
}

// Piece describes a piece without its text.
type Piece struct {
	Hash  string `json:"hash"`
	Chars int    `json:"chars"`
	// Item is the first array item that starts in the piece, At its offset; At is -1 if no item starts there.
	Item int `json:"item"`
	At   int `json:"at"`
}

// Split returns a plain value in pieces if it is too large for a step, nil if it is not. Of more than most bytes it keeps that many.
func Split(value any, most int) (*Large, []string) {
	if jsonvalue.Size(value, leastLarge) <= leastLarge {
		return nil, nil
	}
	return split(value, most, pieceBytes)
}

func split(value any, most, size int) (*Large, []string) {
	l := &Large{Type: typeObject}
	var text string
	var starts []int // of the items
	switch v := value.(type) {
	case string:
		l.Type, text = typeText, v
	case []any:
		l.Type, l.Items = typeList, len(v)
		all := []byte{'['}
		for i, item := range v {
			if i > 0 {
				all = append(all, ',')
			}
			starts = append(starts, len(all))
			all = jsonvalue.Append(all, item)
			if i == 0 {
				l.begins = begins(string(all[1:min(len(all), 1+maxBegins)]))
			}
		}
		text = string(append(all, ']'))
	default:
		if m, ok := value.(map[string]any); ok {
			l.Items = len(m)
		}
		text = string(jsonvalue.Canonical(value))
	}
	if len(text) > most {
		l.WholeBytes, l.Truncated, l.Type, l.Items, l.begins, starts = len(text), true, typeText, 0, "", nil
		text = text[:wholeRunes(text, most)]
	}
	if l.begins == "" {
		l.begins = begins(text)
	}
	l.Hash, l.Bytes = hashOf(text), len(text)
	var pieces []string
	item, from := 0, 0
	for rest := text; rest != ""; {
		n := wholeRunes(rest, size)
		for jsonvalue.Size(rest[:n], maxPieceText) > maxPieceText {
			n = wholeRunes(rest, n/2)
		}
		p := Piece{Hash: hashOf(rest[:n]), Chars: utf8.RuneCountInString(rest[:n]), Item: item, At: -1}
		if item < len(starts) && starts[item] < from+n {
			p.At = starts[item] - from
		}
		for item < len(starts) && starts[item] < from+n {
			item++
		}
		l.Chars += p.Chars
		l.Pieces, pieces = append(l.Pieces, p), append(pieces, rest[:n])
		from, rest = from+n, rest[n:]
	}
	return l, pieces
}

func begins(text string) string { return text[:wholeRunes(text, maxBegins)] }

// wholeRunes is the largest number of bytes up to most that does not cut a character.
func wholeRunes(text string, most int) int {
	if len(text) <= most {
		return len(text)
	}
	for n := most; n > most-utf8.UTFMax && n > 0; n-- {
		if utf8.RuneStart(text[n]) {
			return n
		}
	}
	return most
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// PieceStep is the step of piece i, counted from 0, of the result with a key.
func PieceStep(key string, i int, text string) Step {
	return Step{Key: key, Kind: StepPiece, Body: map[string]any{"piece": float64(i + 1), agentsteps.PieceMember: text}}
}

// LargeOf returns the large result that a journal entry describes, or nil.
func LargeOf(step map[string]any) *Large {
	ref, ok := step["outputRef"].(map[string]any)
	if !ok {
		return nil
	}
	var l Large
	if err := fromValue(ref, &l); err != nil {
		return nil
	}
	return &l
}

// refer records a large result.
func (b body) refer(c *call, l *Large, previewChars int) body {
	kept := *l
	clip := func() string {
		short := firstUnits([]byte(l.begins), previewChars)
		if len(short) < len(l.begins) || l.Type != typeList {
			short += "…"
		}
		return short
	}
	text := "[" + c.name + "] "
	switch l.Type {
	case typeList:
		text += fmt.Sprintf("list of %s, %s. First item: ", counted(l.Items, "item"), sizeText(l.Bytes))
	case typeText:
		text += "text, " + sizeText(l.Bytes)
		if l.Truncated {
			text += fmt.Sprintf(", the beginning of %s: the rest was not kept", sizeText(l.WholeBytes))
		}
		text += ". It begins: "
	default:
		text += fmt.Sprintf("object of %s, %s. It begins: ", counted(l.Items, "member"), sizeText(l.Bytes))
	}
	kept.Preview = text + clip()
	v, err := toValue(kept)
	if err != nil {
		return b.withError(ToolResultTooLarge, "the result cannot be kept: "+err.Error())
	}
	b["outputRef"], b["bytes"] = v, float64(l.Bytes)
	return b
}

// offerFetch offers fetch_result from the next turn on to an agent that began without it, once a result is too large to be shown.
func (a *agent) offerFetch() {
	if a.fetches {
		return
	}
	for i := range a.tools {
		if a.tools[i].Name == fetchResult {
			return // another tool has the name
		}
	}
	a.tools = append(a.tools[:len(a.tools):len(a.tools)], fetchTool())
	a.fetches = true
	a.talk.offer(a.tools)
}

// withoutPieces leaves out the pieces, which do not affect the agent. at are the indexes of the other steps, nil without pieces.
func withoutPieces(steps []Step) (rest []Step, at []int) {
	for i := range steps {
		if steps[i].Kind == StepPiece {
			if at == nil {
				at = make([]int, i, len(steps))
				for j := range at {
					at[j] = j
				}
				rest = append(rest, steps[:i]...)
			}
		} else if at != nil {
			rest, at = append(rest, steps[i]), append(at, i)
		}
	}
	if at == nil {
		return steps, nil
	}
	return rest, at
}

// checkPieces reports the first result whose pieces are missing or changed.
func checkPieces(steps []Step) (at int, err error) {
	for i := range steps {
		l := LargeOf(steps[i].Body)
		if steps[i].Kind != StepResult || l == nil {
			continue
		}
		first := i - len(l.Pieces)
		if first < 0 {
			return i, invalid(&steps[i], i, "pieces of its result are missing")
		}
		for j, p := range l.Pieces {
			s := &steps[first+j]
			part, isPart := agentsteps.Read(s.Kind, s.Body).(*agentsteps.Part)
			if !isPart || s.Key != steps[i].Key || hashOf(part.Text) != p.Hash {
				return first + j, damaged(s.Key, j)
			}
		}
	}
	return 0, nil
}

func damaged(ref string, i int) error {
	return &problem.Error{
		Code:    problem.BlobDamaged,
		Message: problem.Format("piece %d of the result %q is missing, or does not match its hash", i+1, problem.Clip(ref, problem.MaxQuoted)),
		Hint:    "restore a backup; the rest of the result can still be read",
	}
}
