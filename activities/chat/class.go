package chat

// Class is the kind of a failure to answer. It decides whether the same model is asked again, or the next one.
type Class string

// The classes.
const (
	// ClassBusy: the provider limits the rate of its clients, or is overloaded.
	ClassBusy Class = "busy"
	// ClassDown: the provider fails, cannot be reached, or breaks off its answer.
	ClassDown Class = "down"
	// ClassSlow: no answer in time.
	ClassSlow Class = "slow"
	// ClassQuota: the account has no credit left.
	ClassQuota Class = "quota"
	// ClassCredentials: the key is missing, or the provider rejects it.
	ClassCredentials Class = "credentials"
	// ClassUnknown: the provider has no such model.
	ClassUnknown Class = "unknown"
	// ClassContext: the conversation is too large for the model.
	ClassContext Class = "context"
	// ClassRefused: the model, or a content filter of the provider, refuses to answer.
	ClassRefused Class = "refused"
	// ClassAnswer: the answer is unusable: empty, cut off, or a violation of the schema.
	ClassAnswer Class = "answer"
	// ClassRequest: the provider rejects the request as invalid.
	ClassRequest Class = "request"
)

// Classes returns all classes.
func Classes() []Class {
	return []Class{
		ClassBusy, ClassDown, ClassSlow, ClassQuota, ClassCredentials, ClassUnknown, ClassContext, ClassRefused, ClassAnswer, ClassRequest,
	}
}

// Outages returns the classes that lead to the next model by default: failures that are independent of the request.
func Outages() []Class {
	return []Class{ClassBusy, ClassDown, ClassSlow, ClassQuota, ClassCredentials, ClassUnknown, ClassContext}
}

// The fields of a failure's data (activities.Failure.Data) that classify it.
const (
	DataClass  = "class"
	DataStatus = "status"
)

// StatusRateLimit is the HTTP status of a rate limit.
const StatusRateLimit = 429

// ClassIn reads the class of a failure from its data, and the HTTP status, 0 without one. The class is "" for a model that does not classify.
func ClassIn(data map[string]any) (Class, int) {
	class, _ := data[DataClass].(string)
	switch status := data[DataStatus].(type) {
	case int:
		return Class(class), status
	case float64: // read from a record
		return Class(class), int(status)
	}
	return Class(class), 0
}

// Data returns the data of a failure of class c, which ClassIn reads. status is the HTTP status, 0 without one.
func (c Class) Data(status int) map[string]any {
	data := map[string]any{DataClass: string(c)}
	if status != 0 {
		data[DataStatus] = status
	}
	return data
}

// Temporary reports whether the provider may answer the same request later: ClassBusy and ClassDown.
func (c Class) Temporary() bool { return c == ClassBusy || c == ClassDown }

// Code returns the code of an attempt or an agent that ends with a failure of class c; code is the code of the model's failure.
func (c Class) Code(code string) string {
	switch {
	case code != "LLM_PROVIDER_ERROR":
	case c == ClassQuota:
		return CodeQuotaExceeded
	case c == ClassCredentials:
		return CodeCredentialsRefused
	}
	return code
}

// Tries returns how often a model that has a fallback is asked within a turn or a call: at most afterTries. status is the HTTP status of the
// failure. asks is set if the provider asked for a pause longer than a fallback waits.
func (c Class) Tries(status, afterTries int, asks bool) int {
	switch c {
	case ClassDown:
		return afterTries
	case ClassSlow:
		return min(afterTries, 2)
	case ClassBusy:
		if status == StatusRateLimit && !asks {
			return min(afterTries, 2)
		}
	}
	return 1
}
