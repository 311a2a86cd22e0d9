package historypg

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

const renameStore = `UPDATE @meta SET id = gen_random_uuid()::text`

// Adopt gives the store in a schema a new id. Call it after the tables were restored from a backup: processes that used them before then stop with
// STORE_REPLACED instead of going on with what the backup does not have. It returns the errors of Open for an existing store.
func Adopt(ctx context.Context, url string, o Options) (err error) {
	o.Existing, o.ReadOnly = true, false
	s, err := Open(ctx, url, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.transact(ctx, "the store got no new id", true, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, s.texts.of(renameStore))
		return err
	})
}
