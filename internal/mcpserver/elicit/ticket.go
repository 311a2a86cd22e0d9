package elicit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Lifetime is how long a question may stay open. A later answer is rejected; the person is asked again.
const Lifetime = 24 * time.Hour

// Patience is how long a form keeps other calls from showing the same form; PatienceOfAsked applies to calls made to have the
// person asked.
const (
	Patience        = 5 * time.Minute
	PatienceOfAsked = 30 * time.Second
)

// Ticket identifies the question in a call that the host repeats with the person's answer, so that another process can
// receive that call. It is signed: a missing or changed ticket is rejected. It is not secret, and useless a second
// time, because an interrupt accepts one answer.
type Ticket struct {
	ExecutionID string `json:"run"`
	InterruptID string `json:"interrupt"`
	// Call is CallOf the call that the question answers; the person's answer comes with the same call.
	Call string `json:"call"`
	// Tries counts the invalid answers to this question so far, Asked the earlier questions of this call.
	Tries int `json:"tries,omitempty"`
	Asked int `json:"asked,omitempty"`
	// Card is the digest of the question that a card has shown, and Session that of the client whose card it is; both "" for a form of the
	// host.
	Card    string `json:"card,omitempty"`
	Session string `json:"session,omitempty"`
	// Expires is when the ticket ends.
	Expires time.Time `json:"expires"`
}

// maxSpelling is the largest size, in bytes, of repeated arguments that may be spelt differently.
const maxSpelling = 1 << 20

// CallOf names a call by its tool and its arguments, however they are spelt as JSON.
func CallOf(tool string, arguments []byte) string {
	if len(arguments) <= maxSpelling {
		if plain, err := jsonvalue.Decode(arguments); err == nil {
			arguments = jsonvalue.Canonical(plain)
		}
	}
	sum := sha256.Sum256(append([]byte(tool+"\x00"), arguments...))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// ErrTicket means that a ticket was not made with the key, or was changed. ErrExpired means that one has ended.
var (
	ErrTicket  = errors.New("the ticket is not from this server")
	ErrExpired = errors.New("the ticket has expired")
)

// purpose keeps signatures of tickets apart from others with the same key.
const purpose = "workflows-engine elicit 1\x00"

// maxTicket bounds the text of a ticket. It has the id of the run twice, of at most 2 KiB each, whose characters may take six in JSON.
const maxTicket = 64 << 10

// Seal writes a ticket and signs it.
func Seal(key []byte, t Ticket) string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // texts, numbers and a time of this millennium
	}
	body := base64.RawURLEncoding.EncodeToString(text)
	return body + "." + sign(key, body)
}

// Open reads a ticket. The error is ErrTicket, or ErrExpired with a ticket that is otherwise valid.
func Open(key []byte, sealed string, now time.Time) (Ticket, error) {
	body, signature, _ := strings.Cut(sealed, ".")
	if len(sealed) > maxTicket || !hmac.Equal([]byte(signature), []byte(sign(key, body))) {
		return Ticket{}, ErrTicket
	}
	var t Ticket
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || json.Unmarshal(text, &t) != nil {
		return Ticket{}, ErrTicket
	}
	if !now.Before(t.Expires) {
		return t, ErrExpired
	}
	return t, nil
}

func sign(key []byte, body string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(purpose + body))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
