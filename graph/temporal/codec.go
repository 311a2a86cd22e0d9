package temporal

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	common "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// largePayload is the largest payload, in bytes, that event histories hold themselves.
const largePayload = 32 << 10

// The encodings of payloads.
const (
	encodingKey    = "encoding"
	encodingSealed = "awp/aes-gcm"
	encodingBlob   = "awp/blob"
)

// NewDataConverter returns the data converter for clients of an Engine and a Worker: payloads above 32 KiB are replaced by their SHA-256 and
// kept in the side store, unless that is nil. With a key of 16, 24 or 32 bytes all payloads are encrypted with AES-GCM first; equal payloads
// have equal forms. All clients of a namespace need the same store and key.
func NewDataConverter(side SideStore, key []byte) (converter.DataConverter, error) {
	c := &codec{side: side, put: map[string]bool{}}
	if len(key) > 0 {
		block, err := aes.NewCipher(key)
		if err == nil {
			c.seal, err = cipher.NewGCM(block)
		}
		if err != nil {
			return nil, problem.New(problem.UsageError, "invalid key for payloads").WithCause(err).WithHint("Use 16, 24 or 32 bytes.")
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte("nonce"))
		c.nonce = mac.Sum(nil)
	}
	return workflow.DataConverterWithoutDeadlockDetection(converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), c)), nil
}

// NewFailureConverter returns the failure converter for clients with a key: the texts of failures are encrypted by the data converter, too.
func NewFailureConverter(c converter.DataConverter) converter.FailureConverter {
	return sdk.NewDefaultFailureConverter(sdk.DefaultFailureConverterOptions{DataConverter: c, EncodeCommonAttributes: true})
}

// codec encrypts payloads and keeps large ones elsewhere.
type codec struct {
	side  SideStore
	seal  cipher.AEAD
	nonce []byte // the key from which nonces are derived

	mu  sync.Mutex
	put map[string]bool // hashes that are stored
}

// maxPut bounds the hashes that are remembered as stored.
const maxPut = 10_000

// sideTime bounds a call of the side store.
const sideTime = 30 * time.Second

// Encode implements converter.PayloadCodec.
func (c *codec) Encode(payloads []*common.Payload) ([]*common.Payload, error) {
	out := make([]*common.Payload, len(payloads))
	for i, p := range payloads {
		var err error
		if out[i], err = c.encode(p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *codec) encode(p *common.Payload) (*common.Payload, error) {
	if c.seal != nil {
		text, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
		if err != nil {
			return nil, err
		}
		mac := hmac.New(sha256.New, c.nonce)
		mac.Write(text)
		nonce := mac.Sum(nil)[:c.seal.NonceSize()]
		p = encoded(encodingSealed, c.seal.Seal(nonce, nonce, text, nil))
	}
	if c.side == nil || len(p.GetData()) <= largePayload {
		return p, nil
	}
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	hash := hex.EncodeToString(sum[:])
	c.mu.Lock()
	known := c.put[hash]
	c.mu.Unlock()
	if !known {
		ctx, cancel := context.WithTimeout(context.Background(), sideTime)
		defer cancel()
		if err := c.side.PutBlob(ctx, hash, text); err != nil {
			return nil, err
		}
		c.mu.Lock()
		if len(c.put) >= maxPut {
			clear(c.put)
		}
		c.put[hash] = true
		c.mu.Unlock()
	}
	return encoded(encodingBlob, sum[:]), nil
}

func encoded(encoding string, text []byte) *common.Payload {
	return &common.Payload{Metadata: map[string][]byte{encodingKey: []byte(encoding)}, Data: text}
}

// Decode implements converter.PayloadCodec.
func (c *codec) Decode(payloads []*common.Payload) ([]*common.Payload, error) {
	out := make([]*common.Payload, len(payloads))
	for i, p := range payloads {
		var err error
		if out[i], err = c.decode(p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *codec) decode(p *common.Payload) (*common.Payload, error) {
	if string(p.GetMetadata()[encodingKey]) == encodingBlob {
		if c.side == nil {
			return nil, fmt.Errorf("a payload is in a side store, and no side store is configured")
		}
		ctx, cancel := context.WithTimeout(context.Background(), sideTime)
		defer cancel()
		text, err := c.side.GetBlob(ctx, hex.EncodeToString(p.GetData()))
		if err != nil {
			return nil, err
		}
		if sum := sha256.Sum256(text); string(sum[:]) != string(p.GetData()) {
			return nil, fmt.Errorf("a payload in the side store was altered")
		}
		if p, err = unmarshalled(text); err != nil {
			return nil, err
		}
	}
	if string(p.GetMetadata()[encodingKey]) != encodingSealed {
		return p, nil
	}
	if c.seal == nil {
		return nil, fmt.Errorf("a payload is encrypted, and no key is configured")
	}
	sealed, size := p.GetData(), c.seal.NonceSize()
	if len(sealed) < size {
		return nil, fmt.Errorf("an encrypted payload is cut")
	}
	text, err := c.seal.Open(nil, sealed[:size], sealed[size:], nil)
	if err != nil {
		return nil, fmt.Errorf("a payload cannot be decrypted: %w", err)
	}
	return unmarshalled(text)
}

func unmarshalled(text []byte) (*common.Payload, error) {
	var p common.Payload
	return &p, proto.Unmarshal(text, &p)
}
