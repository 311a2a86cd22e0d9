package activities

import (
	"context"
	"errors"
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// retrySense maps codes to whether another attempt can help (spec: activities, 15). Codes that are not listed,
// including codes of hosts and of embedders' executors, leave the decision to the node's retry policy.
var retrySense = map[problem.Code]Retryable{
	problem.ExecutorUnsupportedNode:     RetryPointless,
	problem.ExecutorNotConfigured:       RetryPointless,
	problem.StepConfigInvalid:           RetryPointless,
	problem.HandlerNotFound:             RetryPointless,
	problem.HandlerError:                RetryUnknown,
	problem.StepCommandFailed:           RetryUnknown,
	problem.StepCommandNotStarted:       RetryUnknown,
	problem.ActivityCancelled:           RetryPointless,
	problem.LLMConfigInvalid:            RetryPointless,
	problem.LLMCredentialsMissing:       RetryPointless,
	problem.LLMCredentialsRefused:       RetryPointless,
	problem.LLMQuotaExceeded:            RetryPointless,
	problem.LLMProviderError:            RetryUnknown,
	problem.LLMOutputInvalid:            RetrySensible,
	problem.InvalidToolCallConfig:       RetryPointless,
	problem.MCPServerNotConfigured:      RetryPointless,
	problem.MCPCommandNotAllowed:        RetryPointless,
	problem.MCPArgumentsInvalid:         RetryPointless,
	problem.MCPToolExecutionError:       RetryUnknown,
	problem.MCPProtocolError:            RetryPointless,
	problem.MCPConnectionClosed:         RetrySensible,
	problem.MCPClientError:              RetrySensible,
	problem.ActivityTimeout:             RetrySensible,
	problem.ActivityPortInvoked:         RetryPointless,
	problem.OutputSchemaViolation:       RetrySensible,
	problem.Timeout:                     RetrySensible,
	problem.DelegateProtocolUnsupported: RetryPointless,
	problem.DelegateAgentNotFound:       RetryPointless,
	problem.DelegateProtocolError:       RetryUnknown,
	problem.DelegatePortInvoked:         RetryPointless,
	problem.A2AConfigInvalid:            RetryPointless,
	problem.A2ACredentialsMissing:       RetryPointless,
	problem.A2AProviderError:            RetryUnknown,
	problem.A2ATaskFailed:               RetryPointless,
}

// RetrySense reports whether another attempt can help after a failure with this code; RetryUnknown for unknown codes.
func RetrySense(code string) Retryable { return retrySense[problem.Code(code)] }

// Interrupted returns the failure of an attempt whose context has ended: because the engine shuts down, because the time
// is over, which has a code of the executor's choice, or because the run was cancelled. what is the subject of the message.
func Interrupted(ctx context.Context, timeout problem.Code, what string) *Failure {
	var failure *Failure
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, problem.RunnerClosed):
		failure = Fail(problem.RunnerClosed, "the engine is shutting down")
	case errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(cause, problem.Timeout):
		failure = Fail(timeout, "%s did not end in time", what)
	default:
		failure = Fail(problem.ActivityCancelled, "%s was cancelled", what)
	}
	failure.Err = ctx.Err()
	return failure
}

// Fail makes a Failure with a formatted message and the code's RetrySense.
func Fail(code problem.Code, format string, args ...any) *Failure {
	return &Failure{Code: string(code), Message: fmt.Sprintf(format, args...), Retryable: retrySense[code]}
}

// Pointless makes a Failure of an error that has a code, after which another attempt cannot help.
func Pointless(err error) *Failure {
	failure := &Failure{Retryable: RetryPointless, Err: err}
	if e, ok := problem.As(err); ok {
		failure.Code = string(e.Code)
	}
	return failure
}
