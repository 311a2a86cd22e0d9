package signing

import (
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
)

// Mode is the treatment of unsigned definitions.
type Mode string

// Modes. Verification cannot be turned off: a signature must always be valid.
const (
	// Optional accepts unsigned definitions. It is the mode of a zero Policy.
	Optional Mode = "optional"
	// Require rejects them.
	Require Mode = "require"
)

// ParseMode reads a mode; "" means Optional. The error is *problem.Error with code USAGE_ERROR.
func ParseMode(s string) (Mode, error) {
	switch Mode(s) {
	case "", Optional:
		return Optional, nil
	case Require:
		return Require, nil
	}
	return "", problem.New(problem.UsageError, "invalid signing mode %q", s).WithHint("use %q or %q", Optional, Require)
}

// Policy decides which definitions are accepted.
type Policy struct {
	Mode Mode
	Keys Keys
}

// Verdict is the outcome for an accepted definition.
type Verdict struct {
	// Verified is true for a signed definition, and KeyID then names the key.
	Verified bool
	KeyID    string
}

// Reason is the stable name of a rejection, in Error.Details under "signing".
type Reason string

// Reasons, in the order of the checks (spec: cli-and-config, 15.2).
const (
	Unsigned             Reason = "unsigned"
	UnsupportedAlgorithm Reason = "unsupported_algorithm"
	NoValue              Reason = "value_missing"
	NoKeys               Reason = "no_keys_configured"
	NotCompact           Reason = "not_three_segments"
	BadHeader            Reason = "header_not_json"
	NoKeyID              Reason = "kid_missing"
	KeyIDMismatch        Reason = "kid_mismatch"
	UnknownKey           Reason = "kid_unknown"
	HeaderAlgorithm      Reason = "header_alg"
	HeaderType           Reason = "header_typ"
	HeaderCritical       Reason = "header_crit"
	PayloadDiffers       Reason = "payload_differs"
	BadSignature         Reason = "signature_invalid"
)

// refuse returns the error of the protocol: VALIDATION_ERROR with details.signing.
func refuse(r Reason, format string, args ...any) error {
	e := problem.New(problem.ValidationError, format, args...)
	e.Details = map[string]any{"signing": map[string]any{"ok": false, "error": e.Message, "reason": string(r)}}
	return e.WithHint("%s", r.hint())
}

// hint returns the hint for a rejected definition.
func (r Reason) hint() string {
	switch r {
	case Unsigned:
		return "Sign the definition. The operator asks for that with " + envname.SigningMode + "=require."
	case NoKeys, UnknownKey:
		return "The operator adds the public key, under the id that the signature names, to " + envname.SigningKeys + "."
	default:
		return "Sign the definition again, as it is now, or leave the signature out where unsigned definitions are accepted."
	}
}

// ReasonOf returns the reason of an error of Verify, "" for other errors.
func ReasonOf(err error) Reason {
	e, ok := errors.AsType[*problem.Error](err)
	if !ok {
		return ""
	}
	details, _ := e.Details["signing"].(map[string]any)
	reason, _ := details["reason"].(string)
	return Reason(reason)
}
