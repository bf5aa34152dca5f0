package devserver

import (
	"context"
	"fmt"
	"maps"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence"
	"go.temporal.io/server/common/persistence/serialization"
	persistencesql "go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/common/resolver"
	"go.temporal.io/server/common/searchattribute/sadefs"
	sqliteschema "go.temporal.io/server/schema/sqlite"
)

// searchAttributes are the search attributes that clusterrun sets on its runs, as in package spec.
// They are typed, so they must be registered in the namespace before a run can have them.
var searchAttributes = map[string]enumspb.IndexedValueType{
	"ClusterRunOwner":    enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	"ClusterRunVerdict":  enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	"ClusterRunHost":     enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST,
	"ClusterRunName":     enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	"ClusterRunCause":    enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	"ClusterRunExitCode": enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	"ClusterRunPriority": enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	"ClusterRunTasks":    enumspb.INDEXED_VALUE_TYPE_INT,
	"ClusterRunRestarts": enumspb.INDEXED_VALUE_TYPE_INT,
}

// createNamespace writes the namespace to the database before the server reads it. Through the API,
// it would be usable only after the server's caches were refreshed. An existing namespace gets only
// the search attributes that an earlier version did not register.
func createNamespace(ctx context.Context, db *config.SQL, o Options) error {
	ns, err := sqliteschema.NewNamespaceConfig(clusterName, o.Namespace, false, nil)
	if err != nil {
		return fmt.Errorf("namespace %s: %w", o.Namespace, err)
	}
	ns.Detail.Config.Retention = durationpb.New(o.Retention)
	if err := sqliteschema.CreateNamespaces(db, ns); err != nil {
		return fmt.Errorf("namespace %s: %w", o.Namespace, err)
	}
	if err := registerAttributes(ctx, db, o.Namespace); err != nil {
		return fmt.Errorf("search attributes of namespace %s: %w", o.Namespace, err)
	}
	return nil
}

// registerAttributes gives each new search attribute a column, while columns remain.
func registerAttributes(ctx context.Context, config *config.SQL, namespace string) error {
	db, err := persistencesql.NewSQLDB(sqlplugin.DbKindUnknown, config, resolver.NewNoopResolver(), log.NewNoopLogger(), metrics.NoopMetricsHandler)
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.SelectFromNamespace(ctx, sqlplugin.NamespaceFilter{Name: &namespace})
	if err != nil {
		return err
	}
	row := rows[0]
	detail, err := serialization.NewSerializer().NamespaceDetailFromBlob(persistence.NewDataBlob(row.Data, row.DataEncoding))
	if err != nil {
		return err
	}
	columns := detail.GetConfig().GetCustomSearchAttributeAliases()
	if columns == nil {
		columns = map[string]string{}
	}
	known := len(columns)
	addColumns(columns)
	if len(columns) == known {
		return nil
	}
	detail.Config.CustomSearchAttributeAliases = columns
	blob, err := serialization.NewSerializer().NamespaceDetailToBlob(detail)
	if err != nil {
		return err
	}
	row.Data, row.DataEncoding = blob.GetData(), blob.GetEncodingType().String()
	_, err = db.UpdateNamespace(ctx, &row)
	return err
}

// addColumns assigns a column to each attribute that does not have one in a namespace.
func addColumns(columns map[string]string) {
	types := sadefs.GetDBIndexSearchAttributes(nil).CustomSearchAttributes
	free := slices.DeleteFunc(slices.Sorted(maps.Keys(types)), func(column string) bool { return columns[column] != "" })
	named := slices.Collect(maps.Values(columns))
	for _, name := range slices.Sorted(maps.Keys(searchAttributes)) {
		at := slices.IndexFunc(free, func(column string) bool { return types[column] == searchAttributes[name] })
		if at < 0 || slices.Contains(named, name) {
			continue
		}
		columns[free[at]] = name
		free = slices.Delete(free, at, at+1)
	}
}
