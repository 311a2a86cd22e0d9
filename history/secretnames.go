package history

import (
	"slices"
	"strings"
	"unicode"
)

// defaultRedaction hides what the protocol and well-known tools hide. A token or jwt is hidden only as the end of a name: a
// token_count is no secret.
var defaultRedaction = Redaction{names: secretNames{
	anywhere: []string{
		"accesskey", "accesstoken", "apikey", "apitoken", "authorization", "authtoken", "bearer", "clientsecret", "cookie", "cookies",
		"credential", "credentials", "encryptionkey", "idtoken", "passcode", "passphrase", "passwd", "password", "passwords", "privatekey",
		"pwd", "refreshtoken", "secret", "secretkey", "secrets", "sessiontoken", "signingkey",
	},
	atEnd: []string{"jwt", "token"},
}}

// secretNames are names of members with secrets, in lower case and without what separates words.
type secretNames struct{ anywhere, atEnd []string }

// with returns the names with others, which count anywhere in a name.
func (n secretNames) with(names []string) secretNames {
	n.anywhere = slices.Clone(n.anywhere)
	for _, name := range names {
		if joined := strings.Join(words(name), ""); joined != "" {
			n.anywhere = append(n.anywhere, joined)
		}
	}
	return n
}

// pieceMember has a part of the text of a value (activities.PieceMember): which members it has cannot be told, so that it is hidden as a whole.
const pieceMember = "pieceText"

// hide reports whether a member has one of the names: as one or several whole words of its own name.
func (n secretNames) hide(member string) bool {
	if member == pieceMember {
		return len(n.anywhere)+len(n.atEnd) > 0
	}
	list := words(member)
	for i := range list {
		run := ""
		for j := i; j < len(list); j++ {
			run += list[j]
			if slices.Contains(n.anywhere, run) || j == len(list)-1 && slices.Contains(n.atEnd, run) {
				return true
			}
		}
	}
	return false
}

// maxNameWords bounds how many words of a name are looked at.
const maxNameWords = 16

// words splits a name into words, in lower case: at what is no letter, where a capital follows a small letter, and before the last of
// several capitals that a small letter follows (APIKey).
func words(name string) (list []string) {
	var word []rune
	end := func() {
		if len(word) > 0 && len(list) < maxNameWords {
			list = append(list, strings.ToLower(string(word)))
		}
		word = word[:0]
	}
	letters := []rune(name)
	for i, c := range letters {
		switch {
		case !unicode.IsLetter(c):
			end()
			continue
		case i > 0 && unicode.IsUpper(c) && (unicode.IsLower(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])):
			end()
		}
		word = append(word, c)
	}
	end()
	return list
}
