// The function tables through which applications call an endpoint.
#pragma once

#include <rdma/fi_endpoint.h>

namespace pullman::ofi {

fi_ops& endpoint_object_operations();

fi_ops_ep& endpoint_operations();
fi_ops_cm& name_operations();
fi_ops_msg& message_operations();
fi_ops_tagged& tagged_operations();
fi_ops_rma& memory_operations();
fi_ops_atomic& atomic_operations();
fi_ops_collective& collective_operations();

// Fills in all of them but the first.
void fill_tables(fid_ep& handle);

// The tables of a shared receive context and a shared transmit context.
fi_ops& shared_receive_object_operations();
fi_ops_msg& shared_receive_message_operations();
fi_ops_tagged& shared_receive_tagged_operations();
void fill_shared_receive_tables(fid_ep& handle);
fi_ops_ep& refused_endpoint_operations();

}  // namespace pullman::ofi
