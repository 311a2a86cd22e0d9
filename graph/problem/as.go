package problem

import "errors"

// As returns the *Error in err's chain.
func As(err error) (*Error, bool) { return errors.AsType[*Error](err) }
