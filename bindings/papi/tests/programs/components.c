/* Prints of the components that count which are disabled, and why. */
#include <papi.h>
#include <stdio.h>

int main(void)
{
    if (PAPI_library_init(PAPI_VER_CURRENT) != PAPI_VER_CURRENT)
        return 1;
    for (int component = 0; component < PAPI_num_components(); component++) {
        const PAPI_component_info_t *info = PAPI_get_component_info(component);
        if (info != NULL && info->name[0] == 'p')
            printf("%s\t%s%s\n", info->name, info->disabled ? "disabled: " : "enabled", info->disabled ? info->disabled_reason : "");
    }
    return 0;
}
