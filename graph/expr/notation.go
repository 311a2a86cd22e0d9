package expr

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"sync"
	"unicode"
)

// notation is a form of Go's notation for texts of one kind. jq's regular expressions are Oniguruma's, in Perl's
// notation: classes such as \w are Unicode's, and $ also matches before a final line break. Constructs that only
// texts of other kinds need are left out, because they are expensive or need package backtrack.
type notation struct {
	// extended leaves out white space and comments (flag x).
	extended bool
	// unicode is for texts that are not ASCII.
	unicode bool
	// lineEnd is for texts that end in a line break.
	lineEnd bool
}

// notationFor returns the notation for a text.
func notationFor(text string, extended bool) notation {
	beyond := strings.IndexFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) >= 0
	return notation{extended: extended, unicode: beyond, lineEnd: strings.HasSuffix(text, "\n")}
}

// The members of classes, of ASCII and of Unicode.
var classMembers = map[string][2]string{
	"word":   {`0-9A-Z_a-z`, `\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}`},
	"digit":  {`0-9`, `\p{Nd}`},
	"space":  {`\t-\r `, `\t-\r\x{85}\p{Z}`},
	"alpha":  {`A-Za-z`, `\p{L}\p{M}\p{Nl}`},
	"alnum":  {`0-9A-Za-z`, `\p{L}\p{M}\p{Nd}\p{Nl}`},
	"upper":  {`A-Z`, `\p{Lu}`},
	"lower":  {`a-z`, `\p{Ll}`},
	"punct":  {`!-/:-@\[-` + "`" + `{-~`, `\p{P}\p{S}`},
	"cntrl":  {`\x00-\x1F\x7F`, `\p{Cc}`},
	"blank":  {`\t `, `\t\p{Zs}`},
	"graph":  {`!-~`, `\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co}`},
	"print":  {` -~`, `\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co}\p{Zs}`},
	"xdigit": {`0-9A-Fa-f`, `0-9A-Fa-f`},
	"ascii":  {`\x00-\x7F`, `\x00-\x7F`},
}

var classEscapes = map[byte]string{'w': "word", 'd': "digit", 's': "space", 'h': "xdigit"}

// members returns the members of a class, or of its complement.
func (n notation) members(class string, outside bool) string {
	kind := 0
	if n.unicode {
		kind = 1
	}
	members := classMembers[class][kind]
	if outside {
		return complement(members)
	}
	return members
}

var complements sync.Map // by members

func complement(members string) string {
	if known, ok := complements.Load(members); ok {
		return known.(string)
	}
	var b strings.Builder
	if re, err := syntax.Parse("[^"+members+"]", syntax.Perl); err == nil {
		for i := 0; i+1 < len(re.Rune); i += 2 {
			fmt.Fprintf(&b, `\x{%X}-\x{%X}`, re.Rune[i], re.Rune[i+1])
		}
	}
	complements.Store(members, b.String())
	return b.String()
}

// maxClasses is how many of Unicode's classes an expression may have: each is some hundred ranges of characters.
const maxClasses = 200

// translate returns the expression in Go's notation, with the additions of package backtrack, and its number of
// Unicode classes, up to just above maxClasses.
func (n notation) translate(text string) (translated string, classes int) {
	var b strings.Builder
	inClass, lines := false, false
	class := func(name string, outside bool) {
		if n.unicode {
			classes++
		}
		switch {
		case inClass:
			b.WriteString(n.members(name, outside))
		case outside:
			b.WriteString("[^" + n.members(name, false) + "]")
		default:
			b.WriteString("[" + n.members(name, false) + "]")
		}
	}
	for i := 0; i < len(text) && classes <= maxClasses; i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text):
			i++
			c = text[i]
			switch name := classEscapes[c|0x20]; {
			case name != "": // a capital letter stands for what is outside
				class(name, c < 'a')
			case c == 'Z' && !inClass:
				b.WriteString(n.end())
			case (c == 'b' || c == 'B') && !inClass && n.unicode:
				classes += 4
				word := "[" + n.members("word", false) + "]"
				behind, notBehind, ahead, notAhead := "(?<="+word+")", "(?<!"+word+")", "(?="+word+")", "(?!"+word+")"
				if c == 'B' {
					ahead, notAhead = notAhead, ahead
				}
				b.WriteString("(?:" + behind + notAhead + "|" + notBehind + ahead + ")")
			case c == 'b' && inClass:
				b.WriteString(`\x08`)
			default:
				if c|0x20 == 'p' {
					classes++
				}
				b.WriteString(text[i-1 : i+1])
			}
		case inClass && strings.HasPrefix(text[i:], "[:"):
			name, found := "", false
			if end := strings.Index(text[i:], ":]"); end > 0 {
				name, found = strings.CutPrefix(text[i+2:i+end], "^")
				if _, known := classMembers[name]; known {
					class(name, found)
					i += end + 1
					continue
				}
			}
			b.WriteByte(c)
		case inClass:
			inClass = c != ']'
			b.WriteByte(c)
		case c == '[':
			inClass = true
			b.WriteByte(c)
			for _, first := range []string{"^", "]"} { // a bracket at the beginning is a member
				if strings.HasPrefix(text[i+1:], first) {
					b.WriteString(first)
					i++
				}
			}
		case c == '$' && !lines:
			b.WriteString(n.end())
		case c == '(' && strings.HasPrefix(text[i:], "(?"):
			options, _, _ := strings.Cut(text[i+2:], ")")
			options, _, _ = strings.Cut(options, ":")
			on, _, _ := strings.Cut(options, "-")
			if strings.Trim(options, "imsx-") == "" {
				lines = lines || strings.Contains(on, "m")
			}
			b.WriteByte(c)
		case n.extended && strings.IndexByte(" \t\n\v\f\r", c) >= 0:
		case n.extended && c == '#':
			if end := strings.IndexByte(text[i:], '\n'); end >= 0 {
				i += end
			} else {
				i = len(text)
			}
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), classes
}

// end matches at $ and \Z: at the end, and before a line break that is the last character.
func (n notation) end() string {
	if n.lineEnd {
		return `(?=\n?\z)`
	}
	return `\z`
}
